import type { SubmitExecutionResultRequest } from '../../client/index.js'
import { type ConnectionOptions, connect } from '../terminal/connection.js'
import { CommandFailure, EXIT } from '../terminal/exit.js'
import { isTable, note, type OutputOptions, printOne } from '../terminal/output.js'
import { readStdin } from '../terminal/stdin.js'

export interface ResolveOptions extends ConnectionOptions, OutputOptions {
  text?: string
  json?: string
  failed?: string
  reason?: string
}

/** Delivers the result of a deferred execution; the session that waits for it goes on. */
export async function resolve(id: string, options: ResolveOptions): Promise<void> {
  const answer = await connect(options).executions.resolve(id, await resultOf(options))
  if (!isTable(options)) printOne(answer, [], options)
  else
    note(
      answer.applied
        ? `Delivered. Session ${answer.sessionId} goes on.`
        : `It had a result already. Session ${answer.sessionId} was told nothing new.`,
    )
}

async function resultOf({ text, json, failed, reason }: ResolveOptions): Promise<SubmitExecutionResultRequest> {
  if ([text, json, failed].filter((given) => given !== undefined).length > 1)
    throw new CommandFailure('A result is one of --text, --json and --failed.', EXIT.usage)
  // without it this would be a success
  if (reason !== undefined && failed === undefined)
    throw new CommandFailure('--reason goes with --failed, which says what went wrong.', EXIT.usage)
  if (failed !== undefined) return { status: 'failed', reason: reason ?? 'error', error: failed }
  if (json !== undefined)
    return { status: 'ok', output: { type: 'json', value: parse(json === '-' ? await readStdin() : json) } }
  if (text === undefined && process.stdin.isTTY)
    throw new CommandFailure(
      'Say what came of it: --text, --json or --failed, or send text on standard input.',
      EXIT.usage,
    )
  return { status: 'ok', output: { type: 'text', value: text ?? (await readStdin()) } }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CommandFailure(`--json is no JSON: ${(error as Error).message}`, EXIT.usage)
  }
}
