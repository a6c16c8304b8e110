import type { Clock, Timer } from './clock.js'

/** Timers do not notice that a clock was set or that the machine slept; so the time is looked at this often. */
const LOOK_MS = 60_000

/** Calls back when the wall clock has reached a time; one time at once. */
export class WallAlarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #at = Infinity
  #timer: Timer | undefined

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** @param at epoch milliseconds, `undefined` for never; takes the place of what was set before */
  set(at: number | undefined): void {
    const next = at ?? Infinity
    if (next === this.#at) return
    this.#at = next
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#at !== Infinity) this.#arm()
  }

  #arm(): void {
    const inMs = Math.min(Math.max(this.#at - this.#clock.now(), 0), LOOK_MS)
    this.#timer = this.#clock.after(inMs, () => {
      if (this.#clock.now() < this.#at) {
        this.#arm()
        return
      }
      this.#at = Infinity
      this.#timer = undefined
      this.#ring()
    })
  }
}
