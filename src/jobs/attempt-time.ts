import type { Clock, Timer } from '../lib/clock.js'

interface TimeLimits {
  /** `undefined`: no limit. */
  durationMs: number | undefined
  parkedMs: number | undefined
  onRunTooLong(error: string): void
  onParkedTooLong(error: string): void
}

/** How long an attempt has run, and has been parked, so far; its owner is told when either is too long. */
export class AttemptTime {
  readonly #clock: Clock
  readonly #limits: TimeLimits
  #leg: 'running' | 'parked' | undefined
  /** By the steady clock: one that is set passes no time. */
  #legSince: number
  #activeMs: number
  #parkedMs: number
  #watchdog: Timer | undefined
  /** Before that no limit that was over as this process began is held against what an earlier one left. */
  #graceUntil = Number.NEGATIVE_INFINITY

  /** @param before what earlier processes have written of it */
  constructor(clock: Clock, before: { activeMs: number; parkedMs: number } | undefined, limits: TimeLimits) {
    this.#clock = clock
    this.#limits = limits
    this.#activeMs = before?.activeMs ?? 0
    this.#parkedMs = before?.parkedMs ?? 0
    this.#legSince = clock.steady()
  }

  /** Up to the last change. */
  get activeMs(): number {
    return this.#activeMs
  }

  get parkedMs(): number {
    return this.#parkedMs
  }

  enter(leg: 'running' | 'parked'): void {
    this.#account()
    this.#leg = leg
    this.#armWatchdog()
  }

  /** An earlier process has begun with the leg. @param parkedMs how long it has been parked in it */
  goOn(leg: 'running' | 'parked', { parkedMs, graceMs }: { parkedMs: number; graceMs: number }): void {
    this.#leg = leg
    this.#parkedMs += parkedMs
    this.#graceUntil = this.#clock.steady() + graceMs
    this.#armWatchdog()
  }

  /** The attempt is over. */
  stop(): void {
    this.#account()
    this.#leg = undefined
    this.#watchdog?.cancel()
  }

  /** Books the time since the last change. */
  #account(): void {
    const now = this.#clock.steady()
    const passed = now - this.#legSince
    if (this.#leg === 'parked') this.#parkedMs += passed
    else if (this.#leg === 'running') this.#activeMs += passed
    this.#legSince = now
  }

  /** One watchdog: for the time spent running while it runs, for the time parked while it is parked. */
  #armWatchdog(): void {
    this.#watchdog?.cancel()
    this.#watchdog = undefined
    const clock = this.#clock
    const { durationMs, parkedMs, onRunTooLong, onParkedTooLong } = this.#limits
    const since = clock.steady() - this.#legSince
    // the grace is for what is over by now, not for what may go on for less than that
    const leftOf = (ms: number) => (ms > since ? ms - since : Math.max(this.#graceUntil - clock.steady(), 0))
    if (this.#leg === 'parked' && parkedMs !== undefined)
      this.#watchdog = clock.after(leftOf(parkedMs - this.#parkedMs), () =>
        onParkedTooLong(`The run was parked for more than ${parkedMs} ms.`),
      )
    else if (this.#leg === 'running' && durationMs !== undefined)
      this.#watchdog = clock.after(leftOf(durationMs - this.#activeMs), () =>
        onRunTooLong(`The run took longer than ${durationMs} ms.`),
      )
  }
}
