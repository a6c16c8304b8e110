import type { Clock, Timer } from './clock.js'

/** Somebody is asked to wait: until it is taken off, or has been on for too long. */
export class Pressure {
  /** Resolves when there is nothing to wait for any more. */
  readonly off: Promise<void>
  readonly #limit: Timer
  #resolve!: () => void

  constructor(clock: Pick<Clock, 'after'>, limitMs: number, onLimit: () => void) {
    this.off = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#limit = clock.after(limitMs, onLimit)
  }

  takeOff(): void {
    this.#limit.cancel()
    this.#resolve()
  }
}
