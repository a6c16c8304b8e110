import type { Clock } from '../lib/clock.js'
import { DueTimes } from '../lib/due-times.js'
import { type Persistence, persistently } from '../lib/patience.js'
import type { QueueAdapter } from './adapter.js'

/** Jobs that are asked for at once. */
const PAGE = 1_000

export interface DelayedJobsOptions extends Persistence {
  clock: Clock
  adapter: QueueAdapter
  /** At least one fell due. */
  onDue(): void
}

/** When queued jobs fall due that wait for their time: of an adapter that tells it, those that do so first, as the others can wait there. */
export class DelayedJobs {
  readonly #options: DelayedJobsOptions
  readonly #due: DueTimes
  /** Since when those are due that fell due and may not be claimed yet, by their ids. */
  readonly #fellDue = new Map<string, number>()
  /** Those that fall due later are in the adapter alone. */
  #until = Number.POSITIVE_INFINITY
  /** By the clock of then; those that were due already are in the adapter alone. */
  #readAt = Number.NEGATIVE_INFINITY
  #reading = false
  #stopped = false

  constructor(options: DelayedJobsOptions) {
    this.#options = options
    this.#due = new DueTimes(options.clock, (fallen) => {
      for (const { id, at } of fallen) this.#fellDue.set(id, at)
      options.onDue()
      this.#readOn()
    })
  }

  /** How many are known to wait. */
  get size(): number {
    return this.#due.size
  }

  /** Reads those that fall due next, from an adapter that has `delayed`. @throws what the adapter throws */
  async read(): Promise<void> {
    const { adapter, clock } = this.#options
    // what comes to wait meanwhile may be missing in the page
    this.#until = Number.POSITIVE_INFINITY
    this.#readAt = clock.now()
    const first = await adapter.delayed!(this.#readAt, PAGE)
    for (const { id, nextRunAt } of first) this.#due.set(id, nextRunAt)
    if (first.length >= PAGE) this.#until = first.at(-1)!.nextRunAt
  }

  set(id: string, at: number): void {
    this.#fellDue.delete(id)
    if (at <= this.#until) this.#due.set(id, at)
    else this.delete(id)
  }

  delete(id: string): void {
    this.#fellDue.delete(id)
    this.#due.delete(id)
    this.#readOn()
  }

  /** All that is due was claimed, by whomever: what fell due and is not any more waits for its time again, as the clock was set back. */
  claimedAll(): void {
    const now = this.#options.clock.now()
    for (const [id, at] of this.#fellDue) if (at > now) this.set(id, at)
    this.#fellDue.clear()
    if (now < this.#readAt) this.#readAgain()
  }

  stop(): void {
    this.#stopped = true
    this.#due.stop()
  }

  /** Those of the page are gone: the next ones are to be known before they fall due. */
  #readOn(): void {
    if (this.#due.size === 0 && this.#until !== Number.POSITIVE_INFINITY) this.#readAgain()
  }

  #readAgain(): void {
    if (this.#reading || this.#stopped) return
    this.#reading = true
    const reading = persistently(async () => {
      if (this.#stopped) return
      await this.read()
      // nothing was known of what fell due since
      this.#options.onDue()
    }, this.#options)
    void reading.finally(() => {
      this.#reading = false
    })
  }
}
