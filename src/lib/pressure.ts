import type { Clock, Timer } from './clock.js'
import { deferred } from './deferred.js'

/** Somebody is asked to wait: until it is taken off, or has been on for too long. */
export class Pressure {
  readonly #off = deferred()
  readonly #limit: Timer

  constructor(clock: Pick<Clock, 'after'>, limitMs: number, onLimit: () => void) {
    this.#limit = clock.after(limitMs, onLimit)
  }

  /** Resolves when there is nothing to wait for any more. */
  get off(): Promise<void> {
    return this.#off.promise
  }

  takeOff(): void {
    this.#limit.cancel()
    this.#off.resolve()
  }
}
