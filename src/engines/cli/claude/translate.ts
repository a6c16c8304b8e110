import { randomUUID } from 'node:crypto'
import type { Message, MessageBlock, TurnSubtype } from '../../../../schemas/events.js'
import type { TokenUsage } from '../../../../schemas/sessions.js'
import type { RunnerEvent } from '../../runner.js'
import { addUsage, NO_USAGE } from '../../token-usage.js'
import { ClaudePlan, type PlanState } from './plan.js'
import type { SdkAssistant, SdkMessage, SdkResult, SdkStatus, SdkStreamEvent, SdkUsage, SdkUser } from './sdk.js'
import { messageUsage, Totals, type TotalsState } from './totals.js'

/** Said often, and of no use to anybody who reads the log. */
const NOISE = new Set([
  'session_state_changed',
  'attachment',
  'thinking_tokens',
  'command_lifecycle',
  'control_request_progress',
])

/** What survives a runner. */
export interface TranslatorState extends TotalsState {
  plan?: PlanState
}

/** The message that is being streamed, of the main agent or of one of its helpers. */
interface Stream {
  /** Of the assistant message that the block in progress becomes. */
  uuid: string
  /** As far as it is told, and not counted yet. */
  usage: SdkUsage
  /** Of the block in progress, until its message comes. */
  text: string
}

/**
 * Makes the gateway's events of what the SDK says. An assistant message comes once per content block; what it costs is known only a
 * moment later, so each is held back until then, or until anything else happens.
 */
export class ClaudeTranslator {
  readonly totals: Totals
  readonly #emit: (event: RunnerEvent) => void
  readonly #withDeltas: boolean
  readonly #plan: ClaudePlan
  readonly #streams = new Map<string | null, Stream>()
  /** What the messages of this turn have told that they cost. */
  #used = NO_USAGE
  /** The agent's own name of its last message in this turn. */
  lastUuid: string | undefined
  /** Why a compaction of this turn came to nothing. */
  #notCompacted: string | undefined
  #held: { event: Extract<RunnerEvent, { type: 'assistant_message' }>; parent: string | null } | undefined

  constructor(emit: (event: RunnerEvent) => void, withDeltas: boolean, state?: TranslatorState) {
    this.#emit = emit
    this.#withDeltas = withDeltas
    this.totals = new Totals(state)
    this.#plan = new ClaudePlan(state?.plan)
  }

  get state(): TranslatorState {
    return { ...this.totals.state, ...this.#plan.state }
  }

  /** Everything but inits, status changes and results, which are the runner's to judge. */
  translate(message: SdkMessage): void {
    if (message.type === 'stream_event') {
      this.#stream(message)
      return
    }
    this.flush()
    if (message.type === 'system' && message.subtype === 'status' && message.compact_result === 'failed')
      this.#notCompacted = message.compact_error ?? 'The conversation could not be compacted.'
    if (message.type === 'assistant') this.#assistant(message)
    else if (message.type === 'user') this.#user(message)
    else if (message.type === 'rate_limit_event') this.#emit({ type: 'rate_limit', info: message.rate_limit_info })
    else if (!NOISE.has(message.type) && !NOISE.has((message as { subtype: string }).subtype))
      this.#emit({ type: 'engine_event', payload: message })
  }

  /** Lets go of the message that is held back: something else is about to be told. */
  flush(): void {
    const held = this.#held
    this.#held = undefined
    if (held) this.#emit(held.event)
  }

  /**
   * Nothing more is said: what was begun is told as far as it came, since its deltas are in no log, and with it what it is known to have
   * cost, which nobody would count otherwise.
   */
  breakOff(): void {
    this.flush()
    for (const [parent, { uuid, text }] of this.#streams) {
      const usage = this.#count(parent)
      const hasCost = Object.values(usage).some((count) => count > 0)
      const content = text ? [{ type: 'text' as const, text }] : []
      const message: Message = { role: 'assistant', content, ...(hasCost && { usage }) }
      if (text || hasCost) this.#emit({ type: 'assistant_message', message, uuid, parentToolUseId: parent })
    }
  }

  /**
   * @param result without any usage: what the messages told is what the turn used
   * @param interrupted whether somebody asked for this end
   * @param earlier what the turn took before it was parked
   */
  complete(result: SdkResult, interrupted: boolean, earlier = { elapsedMs: 0, steps: 0 }): void {
    // the turn's own end tells it
    for (const parent of this.#streams.keys()) this.#count(parent)
    this.breakOff()
    const { usage, ...totals } = this.totals.add(result, earlier.steps)
    // the command ends as if it had gone well; a turn that compacts by itself goes on, and has an end of its own
    const failure = result.num_turns === 0 ? this.#notCompacted : undefined
    const subtype = subtypeOf(result, interrupted, failure)
    const isError = subtype !== 'success' && subtype !== 'interrupted'
    this.#emit({
      type: 'turn_completed',
      subtype,
      isError,
      durationMs: earlier.elapsedMs + (result.duration_ms ?? 0),
      ...totals,
      usage: result.usage || result.modelUsage ? usage : this.#used,
      ...(!isError && result.result !== undefined && { result: result.result }),
      ...(isError && { errors: errorsOf(result, failure) }),
    })
    this.#notCompacted = undefined
    this.#streams.clear()
    this.#used = NO_USAGE
    this.lastUuid = undefined
  }

  #stream({ event, parent_tool_use_id: parent }: SdkStreamEvent): void {
    const stream = this.#streams.get(parent)
    switch (event.type) {
      case 'message_start':
        this.flush()
        this.#count(parent)
        this.#streams.set(parent, { uuid: randomUUID(), usage: event.message?.usage ?? {}, text: '' })
        return
      case 'content_block_start':
        this.flush()
        if (stream) Object.assign(stream, { uuid: randomUUID(), text: '' })
        return
      case 'content_block_delta':
        if (stream && event.delta?.type === 'text_delta') stream.text += event.delta.text ?? ''
        if (stream && this.#withDeltas) this.#delta(stream.uuid, parent, event.delta ?? {})
        return
      case 'message_delta':
        if (stream) {
          stream.usage = { ...stream.usage, ...event.usage }
          const usage = this.#count(parent)
          if (this.#held?.parent === parent) {
            const { message } = this.#held.event
            message.usage = usage
            if (event.delta?.stop_reason) message.stopReason = event.delta.stop_reason
          }
        }
        this.flush()
        return
    }
  }

  /** @returns what the message of a stream has cost since this was asked the last time */
  #count(parent: string | null): TokenUsage {
    const stream = this.#streams.get(parent)
    const usage = messageUsage(stream?.usage ?? {})
    this.#used = addUsage(this.#used, usage)
    if (stream) stream.usage = {}
    return usage
  }

  #delta(uuid: string, parent: string | null, delta: NonNullable<SdkStreamEvent['event']['delta']>): void {
    const told =
      delta.type === 'text_delta'
        ? { type: 'text' as const, text: delta.text ?? '' }
        : delta.type === 'thinking_delta'
          ? { type: 'thinking' as const, text: delta.thinking ?? '' }
          : delta.type === 'input_json_delta'
            ? { type: 'tool_input' as const, json: delta.partial_json ?? '' }
            : undefined
    if (told) this.#emit({ type: 'stream_delta', uuid, blockIndex: 0, delta: told, parentToolUseId: parent })
  }

  #assistant(said: SdkAssistant): void {
    const parent = said.parent_tool_use_id
    const stream = this.#streams.get(parent)
    const event = {
      type: 'assistant_message' as const,
      message: assistantMessage(said),
      uuid: stream?.uuid ?? said.uuid ?? randomUUID(),
      parentToolUseId: parent,
    }
    // A second message of the same block must not take the first one's name.
    if (stream) Object.assign(stream, { uuid: randomUUID(), text: '' })
    this.#held = { event, parent }
    if (parent === null) {
      this.lastUuid = said.uuid
      this.#plan.read(event.message.content)
    }
    if (!stream) this.flush()
  }

  #user(said: SdkUser): void {
    if (said.isReplay) return
    const content = contentOf(said.message.content)
    this.#emit({
      type: 'user_message',
      message: { role: 'user', content },
      uuid: said.uuid ?? randomUUID(),
      parentToolUseId: said.parent_tool_use_id,
      synthetic: true,
    })
    const entries = said.parent_tool_use_id === null ? this.#plan.read(content) : undefined
    if (entries) this.#emit({ type: 'plan_updated', entries })
  }
}

/** Said before every call of the model, and after. */
export const isUsual = ({ subtype, status, compact_result }: SdkStatus): boolean =>
  subtype === 'status' && !compact_result && (!status || status === 'requesting')

/** A message as it stands in the transcript; what it cost is not said, because the transcript does not know. */
export function assistantMessage({ message }: Pick<SdkAssistant, 'message'>): Message {
  return {
    role: 'assistant',
    content: contentOf(message.content),
    ...(message.model && { model: message.model }),
    ...(message.stop_reason && { stopReason: message.stop_reason }),
  }
}

export const contentOf = (content: unknown): string | MessageBlock[] =>
  typeof content === 'string' ? content : Array.isArray(content) ? (content as MessageBlock[]) : []

function subtypeOf(result: SdkResult, interrupted: boolean, failure: string | undefined): TurnSubtype {
  if (result.subtype === 'error_max_turns' || result.subtype === 'error_max_budget_usd') return result.subtype
  // `success` says how the turn ended, not that it went well.
  if (!result.is_error && result.subtype === 'success' && failure === undefined) return 'success'
  return interrupted || result.terminal_reason?.startsWith('aborted') ? 'interrupted' : 'error_during_execution'
}

/** Why it failed; @param failure something else that did */
export function errorsOf(result: SdkResult, failure?: string): string[] {
  const errors = [...(result.errors ?? []), failure].filter((error) => typeof error === 'string')
  if (errors.length > 0) return errors
  return [result.result || result.terminal_reason || result.subtype]
}
