import { randomUUID } from 'node:crypto'
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { MessageBlock, OtherBlock, PlanEntry } from '../../../../schemas/events.js'
import { NOT_ALLOWED, type RunnerEvent } from '../../runner.js'
import { addUsage, contextUsage, NO_USAGE } from '../../token-usage.js'
import type { AcpTraits } from '../agent-table.js'
import { planOf, planOfCall } from '../plan.js'
import type { SessionCost } from './cost.js'
import { MessagesInProgress, type Speaker } from './messages.js'
import { hasBegun, inputOf, type KnownCall, resultOf, type ToolCalls } from './tool-calls.js'
import { parentOf } from './tool-names.js'
import { callUsage } from './usage.js'

type Chunk = Extract<SessionUpdate, { sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }>

const UNALLOWABLE = 'The agent asked for permission and offered no way to allow it, so it was denied.'
const NOT_CARRIED_OUT = 'The call was not carried out.'
const CUT_OFF = 'The turn ended while this was running. It may have taken effect, in part or as a whole.'

interface TranslatorParts {
  emit(event: RunnerEvent): void
  withDeltas: boolean
  calls: ToolCalls
  traits: AcpTraits | undefined
  cost: SessionCost
  title: string | undefined
}

/** Makes the gateway's events of what an agent tells. */
export class AcpTranslator {
  /** Of the calls of the model in this turn, where the agent counts them. */
  usage = NO_USAGE
  /** What the agent itself said last. */
  lastText = ''
  /** The end of that, as it came: what an agent adds of its own to what its model said. */
  lastPiece = ''
  /** Whether the agent said, thought or did anything in this turn. */
  hasSpoken = false
  /** While an old session is loaded: all that comes was said before. */
  isReplaying = false
  /** Whether anything was told that was said before. */
  hasHistory = false
  /** Empty while the model is unknown. */
  model = ''
  /** What the agent calls the session. */
  title: string | undefined
  readonly #parts: TranslatorParts
  readonly #messages = new MessagesInProgress((speaker, blocks, uuid) => {
    const text = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    if (speaker === null && text) this.lastText = text
    this.#assistant(speaker, blocks, uuid)
  })
  #userText = ''

  constructor(parts: TranslatorParts) {
    this.#parts = parts
    this.title = parts.title
  }

  /** @param helper the session of a helper that the agent runs, when it is not the agent's own */
  translate(update: SessionUpdate, helper?: string): void {
    switch (update.sessionUpdate) {
      case 'user_message_chunk':
        // What a helper is told is the input of the call that runs it.
        if (helper !== undefined) break
        this.#messages.endAll()
        this.hasHistory = true
        if (update.content.type === 'text' && !this.#isIgnored(update.content.text))
          this.#userText += update.content.text
        break
      case 'agent_message_chunk':
      case 'agent_thought_chunk':
        this.#chunk(update, helper)
        break
      case 'tool_call':
      case 'tool_call_update': {
        if (update.sessionUpdate === 'tool_call_update' && this.#parts.calls.isOver(update.toolCallId)) break
        const call = this.#parts.calls.learn(update)
        if (helper !== undefined) call.parent ??= this.#speaker(helper)
        this.#call(call)
        break
      }
      case 'usage_update':
        if (helper === undefined) this.#used(update)
        break
      case 'plan':
        if (helper === undefined) this.#planned(planOf(update.entries))
        break
      case 'session_info_update':
        if (helper === undefined && update.title) this.#titled(update.title)
        break
      // The agent's own bookkeeping, and what the runner itself looks at.
      case 'available_commands_update':
      case 'current_mode_update':
      case 'config_option_update':
        break
      default:
        this.#parts.emit({ type: 'engine_event', payload: update })
    }
  }

  /** Tells of a call, with the input as it is known by now; once. */
  tellCall(call: KnownCall): void {
    if (call.isTold) return
    this.#endUser()
    this.#messages.end(call.parent)
    call.isTold = true
    this.#assistant(call.parent, [{ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call) }])
  }

  /** Completes the messages in progress. */
  flush(): void {
    this.#endUser()
    this.#messages.endAll()
  }

  /** The turn is over: what the agent does not tell any more has ended without a result. */
  endTurn(): void {
    this.flush()
    for (const call of this.#parts.calls.open()) {
      if (call.isTold) this.#result(call, hasBegun(call) ? CUT_OFF : NOT_CARRIED_OUT, true)
      this.#parts.calls.forget(call)
    }
  }

  startTurn(): void {
    // what the agent said, and called, after the end of the turn before is no part of its next answer
    this.endTurn()
    this.usage = NO_USAGE
    this.lastText = ''
    this.lastPiece = ''
    this.hasSpoken = false
  }

  #chunk(update: Chunk, helper: string | undefined): void {
    const used = callUsage(update)
    if (used) this.usage = addUsage(this.usage, used)
    this.#endUser()
    const speaker = parentOf(update._meta) ?? this.#speaker(helper)
    if (update.content.type !== 'text') {
      this.#messages.end(speaker)
      this.#assistant(speaker, [update.content as unknown as OtherBlock])
      return
    }
    const { text } = update.content
    if (text === '' || this.#isIgnored(text)) return
    const type = update.sessionUpdate === 'agent_thought_chunk' ? 'thinking' : 'text'
    if (speaker === null && type === 'text') this.lastPiece = text.trim()
    const place = this.#messages.add(speaker, { type, text, messageId: update.messageId ?? undefined })
    if (!this.#parts.withDeltas || this.isReplaying) return
    this.#parts.emit({ type: 'stream_delta', ...place, delta: { type, text }, parentToolUseId: speaker })
  }

  /** Whose words come while a helper runs; some agents do not say that they are not their own. */
  #speaker(helper: string | undefined): Speaker {
    if (helper === undefined && !this.#parts.traits?.helperTools) return null
    const open = this.#parts.calls.open().filter(({ isTold }) => isTold)
    const running = open.filter(({ name }) => this.#parts.traits?.helperTools?.includes(name)).at(-1)
    return running?.id ?? (helper === undefined ? null : (open.at(-1)?.id ?? helper))
  }

  /** Nobody is asked what nobody could allow. */
  tellUnallowable(call: KnownCall): void {
    this.#parts.calls.deny(call, UNALLOWABLE)
    const payload = { type: 'permission_unallowable', toolUseId: call.id, message: UNALLOWABLE }
    this.#parts.emit({ type: 'engine_event', payload })
  }

  #call(call: KnownCall): void {
    if (call.status !== 'pending') this.tellCall(call)
    if ((call.status !== 'completed' && call.status !== 'failed') || call.isDone) return
    call.isDone = true
    this.#messages.end(call.id)
    this.#messages.end(call.parent)
    this.#parts.calls.forget(call)
    const result = resultOf(call)
    this.#result(call, call.isDenied && result === '' ? (call.denial ?? NOT_ALLOWED) : result, call.status === 'failed')
    if (call.parent === null && call.status === 'completed') this.#planned(planOfCall(call.name, call.input))
  }

  #result(call: KnownCall, content: unknown, isError: boolean): void {
    const block: MessageBlock = {
      type: 'tool_result',
      tool_use_id: call.id,
      content,
      ...(isError && { is_error: true }),
    }
    this.#parts.emit({
      type: 'user_message',
      message: { role: 'user', content: [block] },
      uuid: randomUUID(),
      parentToolUseId: call.parent,
      synthetic: true,
      ...this.#replayMark,
    })
  }

  #used({ used, size, cost }: Extract<SessionUpdate, { sessionUpdate: 'usage_update' }>): void {
    if (cost?.currency === 'USD') this.#parts.cost.told(cost.amount, this.isReplaying)
    const usage = contextUsage(used, size)
    if (usage && !this.isReplaying) this.#parts.emit({ type: 'context_usage', usage })
  }

  #planned(entries: PlanEntry[] | undefined): void {
    if (entries && !this.isReplaying) this.#parts.emit({ type: 'plan_updated', entries })
  }

  #titled(title: string): void {
    if (title === this.title) return
    this.title = title
    this.#parts.emit({ type: 'engine_event', payload: { type: 'title_changed', title } })
  }

  #endUser(): void {
    const text = this.#userText
    this.#userText = ''
    // The gateway has told of what was said in this session.
    if (text === '' || !this.isReplaying) return
    this.#parts.emit({
      type: 'user_message',
      message: { role: 'user', content: text },
      uuid: randomUUID(),
      parentToolUseId: null,
      replay: true,
    })
  }

  #assistant(speaker: Speaker, content: MessageBlock[], uuid: string = randomUUID()): void {
    this.hasSpoken = true
    // The agent goes on without a word about the calls that were denied.
    for (const call of this.#parts.calls.denied().filter(({ parent }) => parent === speaker)) {
      this.#parts.calls.forget(call)
      this.#result(call, call.denial ?? NOT_ALLOWED, true)
    }
    this.#parts.emit({
      type: 'assistant_message',
      message: { role: 'assistant', content, ...(this.model && { model: this.model }) },
      uuid,
      parentToolUseId: speaker,
      ...this.#replayMark,
    })
  }

  #isIgnored(text: string): boolean {
    return this.#parts.traits?.ignoredText?.test(text) ?? false
  }

  get #replayMark(): { replay?: true } {
    return this.isReplaying ? { replay: true } : {}
  }
}
