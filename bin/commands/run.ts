import { closeSync, openSync, realpathSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import pc from 'picocolors'
import type { CreateSessionRequest, PermissionMode } from '../../client/index.js'
import { type ConnectionOptions, connect } from '../terminal/connection.js'
import { Conversation } from '../terminal/conversation.js'
import { CommandFailure, EXIT } from '../terminal/exit.js'
import { isInteractive } from '../terminal/keys.js'
import { note, print } from '../terminal/output.js'
import { readStdin } from '../terminal/stdin.js'
import { askWords } from '../terminal/words.js'

export interface RunOptions extends ConnectionOptions {
  profile?: string
  cwd?: string
  mode?: string
  model?: string
  title?: string
  detach?: boolean
  json?: boolean
  wait?: boolean
  outputLastMessage?: string
}

/** Starts a session with a prompt and stays with it until its turn has ended. */
export async function run(words: string[], options: RunOptions): Promise<void> {
  const { detach, outputLastMessage: lastMessage } = options
  if (detach && lastMessage !== undefined)
    throw new CommandFailure(
      '--output-last-message is not for --detach, which does not wait for a message.',
      EXIT.usage,
    )
  const prompt = await promptOf(words)
  const gateway = connect(options)
  if (lastMessage !== undefined) assertWritable(lastMessage)
  const { id } = await gateway.sessions.create(requestOf(prompt, options))
  if (detach) {
    print(options.json ? JSON.stringify({ id }) : id)
    return
  }
  if (!options.json) note(pc.dim(`Session ${id}`))
  const outcome = await new Conversation(gateway.session(id), {
    json: options.json === true,
    untilTurn: true,
    unattended: options.wait ? 'leave' : 'deny',
  }).run()
  if (lastMessage !== undefined) writeFileSync(lastMessage, `${outcome.lastText}\n`)
  if (!options.json && !outcome.isClosed) note(pc.dim(`To go on: session-gateway sessions attach ${id}`))
  process.exitCode = outcome.exitCode
}

/** Before a turn is begun whose last words would be lost. What the file has stays until there are others. */
function assertWritable(file: string): void {
  try {
    const there = statSync(file, { throwIfNoEntry: false })
    // whoever reads a pipe would read to its end now, and be gone when the words come
    if (there?.isFIFO()) return
    closeSync(openSync(file, 'a'))
    // a turn that is refused leaves none
    if (!there) unlinkSync(realpathSync(file))
  } catch (error) {
    throw new CommandFailure(
      `${file} cannot be written: ${(error as Error).message}. See --output-last-message.`,
      EXIT.usage,
    )
  }
}

/** The session that the flags describe. */
export function requestOf(
  prompt: string,
  { profile, cwd, mode, model, title }: RunOptions,
): CreateSessionRequest & { prompt: string } {
  return {
    prompt,
    cwd: resolve(cwd ?? '.'),
    ...(profile !== undefined && { profile }),
    ...(mode !== undefined && { permissionMode: mode as PermissionMode }),
    ...(model !== undefined && { model }),
    ...(title !== undefined && { title }),
  }
}

/** The words of the command line, else standard input, else an answer to a question. */
export async function promptOf(words: string[]): Promise<string> {
  const said = words.join(' ').trim()
  if (said && said !== '-') return said
  if (!process.stdin.isTTY || said === '-') {
    const read = (await readStdin()).trim()
    if (read) return read
  } else if (isInteractive()) {
    const answer = await askWords('What is to be done?')
    if (answer === undefined) throw new CommandFailure('Left.', EXIT.interrupted)
    if (answer.trim()) return answer.trim()
  }
  throw new CommandFailure('There is no prompt. Write it after the command, or send it on standard input.', EXIT.usage)
}
