import { randomUUID } from 'node:crypto'
import type { Clock, Timer } from '../../../lib/clock.js'
import type { RunnerEvent } from '../../runner.js'
import { type HeldCall, ONE_AT_A_TIME } from './gate.js'
import type { SdkInit, SdkResult, SdkUserMessage } from './sdk.js'
import type { AgentTotals } from './totals.js'
import type { TurnTaken } from './turn-watch.js'

/** How long an agent has to write down at which call it was put off, and to end by itself then. */
export const PUT_OFF_GRACE_MS = 4_000
/** How soon an agent comes back to the call that it was put off at, its tools' servers included; then it is asked. */
export const RETURN_MS = 15_000

/** A turn that waits at one of its calls, as it is kept. */
export interface ParkedTurn {
  call: HeldCall
  /** Other calls of the same message, which the agent was told to make again. */
  refused: string[]
  /** What the agent reported last; its successor reports only after the call. */
  init: SdkInit
  agent: AgentTotals
  taken: TurnTaken
}

/** What the agent was told of the calls that it was to make again, for those who read the log. */
export const refusals = (toolUseIds: readonly string[]): RunnerEvent[] =>
  toolUseIds.map((tool_use_id) => ({
    type: 'user_message',
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id, content: ONE_AT_A_TIME, is_error: true }] },
    uuid: randomUUID(),
    parentToolUseId: null,
    synthetic: true,
  }))

/** Whether an agent comes to the call again that its predecessor was put off at. */
export class Comeback {
  #timer: Timer | undefined
  /** Id of the message that asks whether it has anything left to do. */
  #probe: string | undefined
  #isOver = false

  /** @param ask tells the agent something */
  expect(clock: Clock, ask: (message: SdkUserMessage) => void): void {
    if (this.#isOver) return
    this.#timer = clock.after(RETURN_MS, () => {
      this.#probe = randomUUID()
      ask(goesOn(this.#probe))
    })
  }

  /** The agent has come to its call again, or need not any more. */
  end(): void {
    this.#isOver = true
    this.#timer?.cancel()
  }

  /** What the end of a turn that nobody began says: whether the call is lost; undefined: it is another end. */
  isLost({ user_message_uuids: answered }: SdkResult): boolean | undefined {
    if (this.#probe === undefined || !answered?.includes(this.#probe)) return undefined
    this.#probe = undefined
    return !this.#isOver
  }
}

/** Answered at once by an agent that has nothing to do. */
const goesOn = (uuid: string): SdkUserMessage => ({
  type: 'user',
  uuid,
  message: { role: 'user', content: [] },
  parent_tool_use_id: null,
  shouldQuery: false,
})
