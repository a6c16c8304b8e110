import type { PermissionOption } from '@agentclientprotocol/sdk'
import { parentOf, saidName, type Told, type ToolNaming, toolNameOf } from './tool-names.js'

/** A call of a tool, as far as the agent has told of it. */
export interface KnownCall {
  readonly id: string
  /** The call that a helper of the agent makes it for. */
  parent: string | null
  name: string
  title?: string
  input: object
  /** What the agent shows in place of an input that it does not tell: a command, a difference. */
  shown: unknown[]
  content: unknown[]
  output?: unknown
  terminal: string
  status: string
  isTold: boolean
  isDone: boolean
  /** Nobody allowed it; some agents then say no more of it. */
  isDenied: boolean
  /** Why, where it was not a person. */
  denial?: string
  /** Whether the call was allowed when the agent asked; some agents do not say that it runs then. */
  isAllowed: boolean
}

const MAX_OVER = 1_000

/**
 * The calls of a session by id. Agents tell of a call in pieces: some introduce it by asking for permission, some name it before they
 * know its input, none repeats everything.
 */
export class ToolCalls {
  readonly #calls = new Map<string, KnownCall>()
  /** Those that nobody allowed. */
  readonly #denied = new Set<KnownCall>()
  /** Those whose end was told, the last of them. */
  readonly #over = new Set<string>()
  readonly #naming: ToolNaming | undefined

  constructor(naming: ToolNaming | undefined) {
    this.#naming = naming
  }

  /** @param options what may be answered, where it is told by a request for permission */
  learn(told: Told, options?: readonly PermissionOption[]): KnownCall {
    const known = this.#calls.get(told.toolCallId)
    const call: KnownCall = known ?? {
      ...{ id: told.toolCallId, parent: null, name: toolNameOf(told, this.#naming, options) },
      ...{ input: {}, shown: [], content: [] },
      ...{ terminal: '', status: 'pending', isTold: false, isDone: false },
      ...{ isDenied: false, isAllowed: false },
    }
    if (!known) this.#begin(call)
    // Once a name was said it is the call's, in requests and results alike.
    else if (!call.isTold) call.name = saidName(told) ?? call.name
    call.parent ??= parentOf(told._meta) ?? null
    if (told.title) call.title = told.title
    if (isFilled(told.rawInput)) call.input = argumentsIn(told) ?? told.rawInput
    if (told.content?.length) {
      // what comes with its end is its answer, also of one that was not told of before
      if (call.isTold || told.status === 'completed' || told.status === 'failed') call.content = told.content
      else call.shown = told.content
    }
    if (told.rawOutput !== undefined && told.rawOutput !== '') call.output = told.rawOutput
    if (told.status) call.status = told.status
    const delta = (told._meta?.terminal_output_delta as { data?: unknown } | undefined)?.data
    if (typeof delta === 'string') call.terminal += delta
    return call
  }

  deny(call: KnownCall, why?: string): void {
    call.isDenied = true
    if (why !== undefined) call.denial = why
    if (this.#calls.get(call.id) === call) this.#denied.add(call)
  }

  forget(call: KnownCall): void {
    const { id, isTold } = call
    this.#calls.delete(id)
    this.#denied.delete(call)
    if (!isTold) return
    this.#over.add(id)
    const [oldest] = this.#over
    if (this.#over.size > MAX_OVER && oldest !== undefined) this.#over.delete(oldest)
  }

  /** Whether its end was told already: an agent that says more of it, after an interrupt say, makes no new call of it. */
  isOver(id: string): boolean {
    return this.#over.has(id)
  }

  /** An id may be used again. */
  #begin(call: KnownCall): void {
    this.#calls.set(call.id, call)
    this.#over.delete(call.id)
  }

  /** Those that nobody allowed, and whose end was not told; few, however many are open. */
  denied(): KnownCall[] {
    return [...this.#denied]
  }

  /** Those whose end was not told. */
  open(): KnownCall[] {
    return [...this.#calls.values()]
  }
}

/** Whether a call may have done something by now. */
export const hasBegun = ({ isDenied, isAllowed, status }: KnownCall): boolean =>
  !isDenied && (isAllowed || status === 'in_progress')

const isFilled = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0

/** What the tool of a server is called with, where the agent wraps it. */
function argumentsIn({ rawInput, _meta }: Told): object | undefined {
  const { arguments: input } = (rawInput ?? {}) as { arguments?: unknown }
  return _meta?.is_mcp_tool_call && typeof input === 'object' && input !== null ? input : undefined
}

/** What is shown to the person who decides. */
export function inputOf({ input, title, shown }: KnownCall): object {
  // what is asked about is an object, whatever an agent takes for one
  if (isFilled(input)) return Array.isArray(input) ? { rawInput: input } : input
  return { ...(title && { title }), ...(shown.length > 0 && { content: shown.map(plain) }) }
}

/** What the tool answered, as the text that the model sees, or as the agent tells it. */
export function resultOf({ content, output, terminal }: KnownCall): unknown {
  const texts = (content.length > 0 ? content : serverContent(output)).map(plain)
  if (texts.length > 0 && texts.every((part) => typeof part === 'string')) return texts.join('\n')
  if (terminal) return terminal
  if (typeof output === 'string') return output
  const inner = (output as { output?: unknown } | undefined)?.output
  if (typeof inner === 'string') return inner
  if (texts.length > 0) return texts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part))
  return output === undefined ? '' : [{ type: 'text', text: JSON.stringify(output) }]
}

/** The answer of a server's tool, where the agent wraps it. */
function serverContent(output: unknown): unknown[] {
  const { content } = ((output as { result?: unknown } | undefined)?.result ?? {}) as { content?: unknown }
  return Array.isArray(content) ? content.map((part) => ({ type: 'content', content: part })) : []
}

/** Text as a string, anything else as it is. */
function plain(part: unknown): unknown {
  const { type, content } = part as { type?: string; content?: { type?: string; text?: string } }
  return type === 'content' && content?.type === 'text' ? (content.text ?? '') : part
}
