import type { Clock } from '../lib/clock.js'
import { DAY_MS, dayNumber, utcDay } from '../lib/utc-day.js'
import { WallAlarm } from '../lib/wall-alarm.js'
import type { QueueAdapter } from './adapter.js'

/** The cap that holds when a job and the queue may both have one; `undefined`: none. */
export const stricter = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b)

/** The tokens of all jobs of a UTC day, against the limit of a day. */
export class DailyBudget {
  readonly limit: number | undefined
  readonly #clock: Clock
  readonly #adapter: QueueAdapter
  readonly #rollover: WallAlarm
  /** The day that `used` is about. */
  #day = Number.NaN
  #used = 0

  /** @param onRollover called when a day with an exhausted budget is over */
  constructor(given: { limit: number | undefined; clock: Clock; adapter: QueueAdapter; onRollover: () => void }) {
    this.limit = given.limit
    this.#clock = given.clock
    this.#adapter = given.adapter
    this.#rollover = new WallAlarm(given.clock, given.onRollover)
  }

  get today(): string {
    return utcDay(this.#clock.now())
  }

  /** Whether the counter of today was read. */
  get isCurrent(): boolean {
    return this.#day === dayNumber(this.#clock.now())
  }

  /** Of today, as far as it is known. */
  get used(): number {
    return this.isCurrent ? this.#used : 0
  }

  get exhausted(): boolean {
    return this.limit !== undefined && this.used >= this.limit
  }

  /** When an exhausted budget is there again. */
  get resumesAt(): number | undefined {
    return this.exhausted ? (this.#day + 1) * DAY_MS : undefined
  }

  /** Reads the counter when a day has begun, in whichever direction the clock went. */
  async refresh(): Promise<void> {
    if (this.isCurrent) return
    const { today } = this
    this.report(today, await this.#adapter.dailyTokens(today))
  }

  /** Takes in the total that the adapter has for a day. */
  report(day: string, total: number): void {
    if (day !== this.today) return
    this.#used = this.isCurrent ? Math.max(this.#used, total) : total
    this.#day = dayNumber(this.#clock.now())
    this.#rollover.set(this.resumesAt)
  }

  /** Takes in the total as it is now, whatever others have made of it. */
  become(day: string, total: number): void {
    if (day !== this.today) return
    this.#used = total
    this.#day = dayNumber(this.#clock.now())
    this.#rollover.set(this.resumesAt)
  }

  stop(): void {
    this.#rollover.set(undefined)
  }
}
