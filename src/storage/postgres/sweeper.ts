import type { CallDatabase } from '../sql/operations.js'

/** Events of removed sessions that go at once, and how long what else is asked has the database for itself. */
const SWEPT_AT_ONCE = 500
const PAUSE_MS = 20
/** What went wrong is tried again after that long. */
const AGAIN_MS = 1_000

/**
 * Takes away the events of removed sessions, a few at a time: they go with what is asked in the same turn, in its transaction. The space
 * is given back by autovacuum.
 */
export class Sweeper {
  readonly #call: CallDatabase
  #timer: NodeJS.Timeout | undefined
  /** More was removed since the last one began. */
  #isMore = false
  /** For good: a removal may be answered as the database is closed. */
  #isStopped = false

  constructor(call: CallDatabase) {
    this.#call = call
  }

  readonly start = (): void => {
    this.#isMore = true
    this.#after(PAUSE_MS)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #after(ms: number): void {
    if (this.#isStopped) return
    this.#timer ??= setTimeout(() => void this.#sweep(), ms).unref()
  }

  async #sweep(): Promise<void> {
    this.#isMore = false
    const isMore = await this.#call('journal.sweep', SWEPT_AT_ONCE).catch(() => undefined)
    this.#timer = undefined
    if (isMore === undefined) this.#after(AGAIN_MS)
    else if (isMore || this.#isMore) this.start()
  }
}
