import type { CallDatabase } from '../sql/operations.js'

/** Events of removed sessions that go at once, and how long what else is asked has the database for itself. */
const SWEPT_AT_ONCE = 500
const PAUSE_MS = 20

/**
 * Takes away the events of removed sessions, a few at a time: they go with what is asked in the same turn, in its transaction. What goes
 * wrong is tried again after the next removal or start, or when a node has come or gone. The space is given back by autovacuum.
 */
export class Sweeper {
  readonly #call: CallDatabase
  #timer: NodeJS.Timeout | undefined
  /** More was removed since the last one began. */
  #isMore = false

  constructor(call: CallDatabase) {
    this.#call = call
  }

  readonly start = (): void => {
    this.#isMore = true
    this.#timer ??= setTimeout(() => void this.#sweep(), PAUSE_MS).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async #sweep(): Promise<void> {
    this.#isMore = false
    const isMore = await this.#call('journal.sweep', SWEPT_AT_ONCE).catch(() => false)
    // stopped meanwhile: another start is somebody else's
    if (!this.#timer) return
    this.#timer = undefined
    if (isMore || this.#isMore) this.start()
  }
}
