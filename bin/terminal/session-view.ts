import pc from 'picocolors'
import type { AttachItem, MessageBlock, SessionEvent } from '../../client/index.js'
import { MarkdownLines } from './markdown.js'
import { count, duration, money, note, oneLine, rowsOf, safe, screenHeight, screenWidth } from './output.js'

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** What says most about a call, in the order in which it is looked for. */
const TELLING = ['command', 'path', 'file_path', 'url', 'pattern', 'query', 'description', 'prompt']

/** A call's input in a few words. */
export function inputSummary(input: unknown, width: number): string {
  if (typeof input !== 'object' || input === null) return oneLine(String(input ?? ''), width)
  const fields = input as Record<string, unknown>
  const telling = TELLING.map((name) => fields[name]).find((value) => typeof value === 'string')
  return oneLine(typeof telling === 'string' ? telling : JSON.stringify(input), width)
}

export interface ViewOptions {
  /** Whether what the user said is shown, too. */
  showsPrompts?: boolean
}

/**
 * A session on a terminal: what the agent says on standard output, everything about it on standard error, so that a pipe gets the answer
 * alone. On a terminal text appears as it is written, and each line is rendered once it is whole.
 */
export class SessionView {
  readonly #options: ViewOptions
  readonly #isTerminal = Boolean(process.stdout.isTTY)
  #markdown = new MarkdownLines()
  /** The message that is being written, and the line of it that is. */
  #writing: { uuid: string; line: string } | undefined
  /** The message that was written last, as far as it was. */
  #writtenUuid: string | undefined

  constructor(options: ViewOptions = {}) {
    this.#options = options
  }

  show(item: AttachItem): void {
    if (item.type === 'stream_delta') this.#onDelta(item)
    else if (item.type === 'assistant_message') this.#onAssistant(item)
    else if (item.type === 'user_message') this.#onUser(item)
    else if (item.type === 'turn_completed') this.#onTurn(item)
    else {
      const text = noteOn(item)
      if (text !== undefined) this.#note(text)
    }
  }

  /** Goes to the beginning of a line. */
  breakLine(): void {
    if (!this.#writing) return
    this.#finishLine()
    this.#writing = undefined
  }

  #note(text: string): void {
    this.breakLine()
    note(text)
  }

  #onDelta({ uuid, delta, parentToolUseId }: EventOf<'stream_delta'>): void {
    if (!this.#isTerminal || parentToolUseId !== null || delta.type !== 'text') return
    if (this.#writing?.uuid !== uuid) {
      this.breakLine()
      this.#markdown = new MarkdownLines()
      this.#writing = { uuid, line: '' }
      this.#writtenUuid = uuid
    }
    const [first = '', ...rest] = safe(delta.text).split('\n')
    this.#write(first)
    for (const text of rest) {
      this.#finishLine()
      this.#write(text)
    }
  }

  #write(text: string): void {
    if (!this.#writing) return
    this.#writing.line += text
    process.stdout.write(text)
  }

  /** Writes the line once more, rendered, over how it was typed; one that has left the screen at its top cannot be written over. */
  #finishLine(): void {
    const writing = this.#writing
    if (!writing) return
    const rendered = this.#markdown.line(writing.line)
    const rows = rendered === writing.line ? 0 : rowsOf(writing.line)
    if (rows > 0 && rows <= screenHeight())
      process.stdout.write(`\r${rows > 1 ? `\x1b[${rows - 1}A` : ''}\x1b[J${rendered}`)
    process.stdout.write('\n')
    writing.line = ''
  }

  #onAssistant({ uuid, message, parentToolUseId }: EventOf<'assistant_message'>): void {
    const wasWritten = this.#writtenUuid === uuid
    this.breakLine()
    const blocks = blocksOf(message.content)
    const isHelper = parentToolUseId !== null
    for (const block of blocks) {
      if (block.type === 'text' && 'text' in block && !isHelper) {
        if (!wasWritten) this.#print(String(block.text))
      } else if (block.type === 'tool_use' && 'name' in block) {
        const name = safe(String(block.name))
        const width = screenWidth() - name.length - 6
        this.#note(`${isHelper ? '  ' : ''}${pc.cyan('●')} ${pc.bold(name)} ${inputSummary(block.input, width)}`)
      }
    }
  }

  #print(text: string): void {
    const markdown = new MarkdownLines()
    for (const line of safe(text).split('\n'))
      process.stdout.write(`${this.#isTerminal ? markdown.line(line) : line}\n`)
  }

  #onUser({ message, synthetic }: EventOf<'user_message'>): void {
    const blocks = blocksOf(message.content)
    for (const block of blocks) {
      if (block.type === 'tool_result' && 'tool_use_id' in block) {
        const line = oneLine(resultText(block.content), screenWidth() - 6)
        this.#note(`  ${pc.dim('⎿')} ${block.is_error ? pc.red(line) : pc.dim(line)}`)
      } else if (block.type === 'text' && 'text' in block && !synthetic && this.#options.showsPrompts)
        this.#note(pc.bold(`> ${safe(String(block.text))}`))
    }
  }

  #onTurn({ isError, subtype, durationMs, usage, totalCostUsd, errors }: EventOf<'turn_completed'>): void {
    const figures = [
      duration(durationMs),
      `${count(usage.inputTokens + usage.outputTokens)} tokens`,
      money(totalCostUsd),
    ].filter(Boolean)
    const mark =
      subtype === 'interrupted' ? pc.yellow('■ interrupted') : isError ? pc.red('✖ failed') : pc.green('✓ done')
    this.#note(`${mark} ${pc.dim(figures.join(' · '))}`)
    for (const error of errors ?? []) this.#note(pc.red(`  ${safe(error)}`))
  }
}

/** What is told about an event in a line; undefined when nothing is. */
function noteOn(item: AttachItem): string | undefined {
  switch (item.type) {
    case 'gap':
      // nothing is lost where --from names an event that is not there yet
      return pc.dim(
        item.snapshot.replayingFrom > 0 ? '… what happened before is no longer kept' : '… from its beginning',
      )
    case 'permission_resolved': {
      const { behavior, resolvedBy, message } = item
      if (resolvedBy === 'client' && behavior === 'allow') return undefined
      const reason = message ? `: ${oneLine(message, 100)}` : ''
      return pc.dim(`  ${behavior === 'allow' ? 'allowed' : 'denied'} (${resolvedBy})${reason}`)
    }
    case 'execution_dispatched':
      if (!item.deferred) return undefined
      return `${pc.yellow('⧗')} waits for ${safe(item.toolName)}: session-gateway executions resolve ${item.executionId}`
    case 'file_delivered':
      return `${pc.green('⬇')} ${safe(item.path)} ${pc.dim(`(${count(item.bytes)} bytes)`)}`
    case 'session_error':
      return pc.red(`✖ ${safe(item.message)}`)
    case 'session_closed':
      return pc.dim('The session was closed.')
    case 'status_changed':
      return item.status === 'parked'
        ? pc.dim('The session is parked: it goes on when what it waits for comes.')
        : undefined
    default:
      return undefined
  }
}

/** What a message says in words; undefined when it says nothing. */
export function textOf(content: string | MessageBlock[]): string | undefined {
  const texts = blocksOf(content).flatMap((block) =>
    block.type === 'text' && 'text' in block ? [String(block.text)] : [],
  )
  return texts.length > 0 ? texts.join('\n') : undefined
}

const blocksOf = (content: string | MessageBlock[]): MessageBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return JSON.stringify(content) ?? ''
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join(' ')
}
