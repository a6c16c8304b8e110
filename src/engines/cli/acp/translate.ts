import { randomUUID } from 'node:crypto'
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { MessageBlock, OtherBlock } from '../../../../schemas/events.js'
import type { RunnerEvent } from '../../runner.js'
import { inputOf, type KnownCall, resultOf, type ToolCalls } from './tool-calls.js'
import { addUsage, callUsage, NO_USAGE } from './usage.js'

type TextBlock = { type: 'text'; text: string } | { type: 'thinking'; thinking: string }

/**
 * Makes the gateway's events of what an agent tells. Text comes in pieces without an end; a message is complete when something else
 * begins.
 */
export class AcpTranslator {
  /** Of the calls of the model in this turn, where the agent counts them. */
  usage = NO_USAGE
  /** Cumulative, where the agent says so. */
  costUsd = 0
  /** What the agent said last. */
  lastText = ''
  /** While an old session is loaded: all that comes was said before. */
  isReplaying = false
  /** Empty while the model is unknown. */
  model = ''
  readonly #emit: (event: RunnerEvent) => void
  readonly #withDeltas: boolean
  readonly #calls: ToolCalls
  readonly #ignored: RegExp | undefined
  #uuid = randomUUID()
  #messageId: string | undefined
  #blocks: TextBlock[] = []
  #userText = ''

  constructor(emit: (event: RunnerEvent) => void, withDeltas: boolean, calls: ToolCalls, ignored: RegExp | undefined) {
    this.#emit = emit
    this.#withDeltas = withDeltas
    this.#calls = calls
    this.#ignored = ignored
  }

  translate(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'user_message_chunk':
        this.#endAssistant()
        if (update.content.type === 'text' && !this.#ignored?.test(update.content.text))
          this.#userText += update.content.text
        break
      case 'agent_message_chunk':
      case 'agent_thought_chunk':
        this.#chunk(update)
        break
      case 'tool_call':
      case 'tool_call_update':
        this.#call(this.#calls.learn(update))
        break
      case 'usage_update':
        this.#used(update)
        break
      // The agent's own bookkeeping, and what the runner itself looks at.
      case 'session_info_update':
      case 'available_commands_update':
      case 'current_mode_update':
      case 'config_option_update':
        break
      default:
        this.#emit({ type: 'engine_event', payload: update })
    }
  }

  /** Tells of a call, with the input as it is known by now; once. */
  tellCall(call: KnownCall): void {
    if (call.isTold) return
    this.flush()
    call.isTold = true
    this.#assistant([{ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call) }])
  }

  /** Completes the message in progress. */
  flush(): void {
    this.#endUser()
    this.#endAssistant()
  }

  /** The turn is over: what the agent does not tell any more has ended without a result. */
  endTurn(): void {
    this.flush()
    for (const call of this.#calls.open()) {
      if (call.isTold) this.#result(call, 'The call was not carried out.', true)
      this.#calls.forget(call.id)
    }
  }

  startTurn(): void {
    this.usage = NO_USAGE
    this.lastText = ''
  }

  #chunk(update: Extract<SessionUpdate, { sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }>): void {
    const used = callUsage(update)
    if (used) this.usage = addUsage(this.usage, used)
    this.#endUser()
    if (update.content.type !== 'text') {
      this.#endAssistant()
      this.#assistant([update.content as unknown as OtherBlock])
      return
    }
    const { text } = update.content
    if (text === '' || this.#ignored?.test(text)) return
    if (update.messageId && this.#messageId && update.messageId !== this.#messageId) this.#endAssistant()
    this.#messageId = update.messageId ?? undefined
    const isThought = update.sessionUpdate === 'agent_thought_chunk'
    const last = this.#blocks.at(-1)
    if (isThought && last?.type === 'thinking') last.thinking += text
    else if (!isThought && last?.type === 'text') last.text += text
    else this.#blocks.push(isThought ? { type: 'thinking', thinking: text } : { type: 'text', text })
    if (!this.#withDeltas || this.isReplaying) return
    this.#emit({
      type: 'stream_delta',
      uuid: this.#uuid,
      blockIndex: this.#blocks.length - 1,
      delta: { type: isThought ? 'thinking' : 'text', text },
      parentToolUseId: null,
    })
  }

  #call(call: KnownCall): void {
    if (call.status !== 'pending') this.tellCall(call)
    if ((call.status !== 'completed' && call.status !== 'failed') || call.isDone) return
    call.isDone = true
    this.#calls.forget(call.id)
    this.#result(call, resultOf(call), call.status === 'failed')
  }

  #result(call: KnownCall, content: unknown, isError: boolean): void {
    const block: MessageBlock = {
      type: 'tool_result',
      tool_use_id: call.id,
      content,
      ...(isError && { is_error: true }),
    }
    this.#emit({
      type: 'user_message',
      message: { role: 'user', content: [block] },
      uuid: randomUUID(),
      parentToolUseId: null,
      synthetic: true,
      ...this.#replayMark,
    })
  }

  #used({ used, size, cost }: Extract<SessionUpdate, { sessionUpdate: 'usage_update' }>): void {
    if (cost?.currency === 'USD') this.costUsd = cost.amount
    if (this.isReplaying || size <= 0) return
    const percentage = Math.round((used / size) * 100)
    this.#emit({ type: 'context_usage', usage: { totalTokens: used, maxTokens: size, percentage } })
  }

  #endUser(): void {
    const text = this.#userText
    this.#userText = ''
    // The gateway has told of what was said in this session.
    if (text === '' || !this.isReplaying) return
    this.#emit({
      type: 'user_message',
      message: { role: 'user', content: text },
      uuid: randomUUID(),
      parentToolUseId: null,
      replay: true,
    })
  }

  #endAssistant(): void {
    const blocks = this.#blocks
    if (blocks.length === 0) return
    this.#blocks = []
    this.lastText = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    this.#assistant(blocks)
    this.#messageId = undefined
  }

  #assistant(content: MessageBlock[]): void {
    // The agent goes on without a word about the calls that were denied.
    for (const call of this.#calls.open().filter((one) => one.isDenied)) {
      this.#calls.forget(call.id)
      this.#result(call, 'The user does not allow this.', true)
    }
    this.#emit({
      type: 'assistant_message',
      message: { role: 'assistant', content, ...(this.model && { model: this.model }) },
      uuid: this.#uuid,
      parentToolUseId: null,
      ...this.#replayMark,
    })
    this.#uuid = randomUUID()
  }

  get #replayMark(): { replay?: true } {
    return this.isReplaying ? { replay: true } : {}
  }
}
