import type { Gate } from './gate.js'
import { type Limits, limitReached } from './limits.js'
import type { SdkMessage, SdkResult } from './sdk.js'

/** What a turn has taken so far, over all its agents. */
export interface TurnTaken {
  elapsedMs: number
  /** How often the model was called. */
  steps: number
}

const NOTHING: TurnTaken = { elapsedMs: 0, steps: 0 }

/** Whether a result is the end of a turn that the agent took by itself, for what it did in the background. */
export const isOfItsOwn = ({ origin }: SdkResult): boolean => origin !== undefined && origin.kind !== 'human'

/** Looks on at a turn: which calls are open, whether anything but them is under way, and what it has taken. */
export class TurnWatch {
  readonly #gate: Gate
  readonly #limits: Limits
  /** What earlier agents took of the turn. */
  #earlier = NOTHING
  /** As `performance.now` counts: a clock that is set takes no time of a turn. Between turns: not set. */
  #startedAt: number | undefined
  #steps = 0
  /** Whether the message of the model is not over yet. */
  #isStreaming = false
  /** What the agent does beside the turn. */
  #tasks = 0
  #isBegun = false
  #isOwn = false
  /** Whether another model was chosen since the turn began: an init may still name the one that it began with. */
  isModelChosen = false

  constructor(gate: Gate, limits: Limits) {
    this.#gate = gate
    this.#limits = limits
  }

  get earlier(): TurnTaken {
    return this.#earlier
  }

  get taken(): TurnTaken {
    const { elapsedMs, steps } = this.#earlier
    const hereMs = this.#startedAt === undefined ? 0 : Math.round(performance.now() - this.#startedAt)
    return { elapsedMs: elapsedMs + hereMs, steps: steps + this.#steps }
  }

  /** Whether the model was called too often; an agent that took over in the turn does not count what was before. */
  get isBeyond(): boolean {
    const { maxTurns } = this.#limits
    const { steps } = this.#earlier
    return maxTurns !== undefined && steps > 0 && steps + this.#steps > maxTurns
  }

  /** Whether nothing is under way but calls. */
  get isQuiet(): boolean {
    return !this.#isStreaming && this.#tasks === 0
  }

  /** Whether a turn is in progress that the agent took by itself. */
  get isOwn(): boolean {
    return this.#isOwn
  }

  /** Whether the agent does nothing that its end would cut off; a turn of its own that it goes on with after a park counts, too. */
  get isIdle(): boolean {
    return !this.#isBegun && !this.#isOwn && this.#tasks === 0
  }

  begin(earlier = NOTHING): void {
    this.#isBegun = true
    this.#earlier = earlier
    this.#startedAt = performance.now()
    this.#steps = 0
    this.isModelChosen = false
  }

  /**
   * What comes next may be a turn that nobody began.
   * @returns how the turn ended
   */
  end(result: SdkResult): SdkResult {
    const judged = this.#judged(result)
    this.#earlier = NOTHING
    this.#isBegun = false
    this.#isOwn = false
    this.#startedAt = undefined
    this.#steps = 0
    this.#isStreaming = false
    this.#gate.onTurnEnd()
    return judged
  }

  /** The agent may have been told what was left of the budget: it is told as the caller set it. */
  #judged(result: SdkResult): SdkResult {
    const isSpent = result.subtype === 'error_max_budget_usd' && this.#limits.maxBudgetUsd !== undefined
    if (this.isBeyond) return limitReached({ ...result, subtype: 'error_max_turns' }, this.#limits)
    return isSpent ? limitReached(result, this.#limits) : result
  }

  receive(message: SdkMessage): void {
    if (message.type === 'stream_event' && message.parent_tool_use_id === null) {
      if (message.event.type === 'message_start') {
        this.#isStreaming = true
        this.#isOwn ||= !this.#isBegun
        this.#startedAt ??= performance.now()
        this.#steps++
      } else if (message.event.type === 'message_stop') this.#isStreaming = false
    } else if (message.type === 'assistant' && message.parent_tool_use_id === null) {
      for (const id of idsOf(message.message.content, 'tool_use', 'id')) this.#gate.onCall(id)
    } else if (message.type === 'user') {
      for (const id of idsOf(message.message.content, 'tool_result', 'tool_use_id')) this.#gate.onToolResult(id)
    } else if (message.type === 'result') {
      this.#isOwn = false
    } else if (message.type === 'system' && message.subtype === 'background_tasks_changed') {
      this.#tasks = message.tasks.filter(({ ambient }) => !ambient).length
    }
  }
}

/** The ids in the blocks of one type. */
function idsOf(content: unknown, type: string, field: string): string[] {
  if (!Array.isArray(content)) return []
  return content.flatMap((block: Record<string, unknown> | null) => {
    const id = block?.type === type ? block[field] : undefined
    return typeof id === 'string' ? [id] : []
  })
}
