import type { Clock, Timer } from '../../../lib/clock.js'
import { deferred } from '../../../lib/deferred.js'
import { INTERRUPT_GRACE_MS } from '../control.js'
import type { SdkResult } from './sdk.js'

/** The end of a turn whose agent did not follow. */
export const BROKEN_OFF: SdkResult = { type: 'result', subtype: 'error_during_execution', is_error: true }
/** That of a message which came after the interrupt, for the same agent. */
export const NOT_TAKEN: SdkResult = {
  ...BROKEN_OFF,
  errors: ['The agent did not follow an interrupt and was ended before it took this message. Send it again.'],
}

/** The interrupts of an agent's turns. One that does not follow is given up on, once and for all. */
export class Interruption {
  readonly #clock: Clock
  readonly #giveUp: () => void
  readonly #spent = deferred()
  #grace: Timer | undefined
  #isWanted = false
  /** Whether the interrupt is for a turn that the agent took by itself: a message that comes after it is not to end with that. */
  #isOfOwn = false
  #isSpent = false

  /** @param giveUp ends the agent, and the turn with it */
  constructor(clock: Clock, giveUp: () => void) {
    this.#clock = clock
    this.#giveUp = giveUp
  }

  /** The turn in progress is to end. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  /** The agent did not follow. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /**
   * @param turn absent: the agent took it by itself
   * @param command resolves when the agent has taken it, which is not waited for when it is given up on
   */
  async ask(turn: string | undefined, command: () => Promise<void>): Promise<void> {
    this.#isWanted = true
    this.#isOfOwn = turn === undefined
    this.#grace ??= this.#clock.after(INTERRUPT_GRACE_MS, () => {
      this.#isSpent = true
      this.#spent.resolve()
      this.#giveUp()
    })
    await Promise.race([command(), this.#spent.promise])
  }

  /** A turn is over that the agent took by itself, though another one has begun. @returns whether it was to end */
  endOwn(): boolean {
    const isEnded = this.#isOfOwn
    if (isEnded) this.end()
    return isEnded
  }

  /** The turn is over. */
  end(): void {
    this.#isWanted = false
    this.#isOfOwn = false
    this.#grace?.cancel()
    this.#grace = undefined
  }
}
