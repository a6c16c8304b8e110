import type { Clock, Timer } from '../../../lib/clock.js'
import { deferred } from '../../../lib/deferred.js'
import { INTERRUPT_GRACE_MS } from '../control.js'

/** The interrupts of an agent's turns. One that does not follow is given up on, once and for all. */
export class Interruption {
  readonly #clock: Clock
  readonly #giveUp: () => void
  readonly #spent = deferred()
  #grace: Timer | undefined
  #isWanted = false
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

  /** @param command resolves when the agent has taken it, which is not waited for when it is given up on */
  async ask(command: () => Promise<void>): Promise<void> {
    this.#isWanted = true
    this.#grace ??= this.#clock.after(INTERRUPT_GRACE_MS, () => {
      this.#isSpent = true
      this.#spent.resolve()
      this.#giveUp()
    })
    await Promise.race([command(), this.#spent.promise])
  }

  /** The turn is over. */
  end(): void {
    this.#isWanted = false
    this.#grace?.cancel()
    this.#grace = undefined
  }
}
