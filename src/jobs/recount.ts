import type { Clock } from '../lib/clock.js'
import { readInTime } from '../lib/patience.js'
import { type JobCount, listJobs, type QueueAdapter } from './adapter.js'
import type { JobCounters } from './counters.js'

interface RecountOptions {
  adapter: QueueAdapter
  clock: Clock
  counters: JobCounters
  /** On their way into the adapter: nobody knows whether a count has them. */
  submitting(): ReadonlyMap<string, Promise<unknown>>
  /** Runs something while nothing is claimed. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
}

/** Jobs are not counted more often than that, as an adapter may have to list them for it. */
const AGE_MS = 1_000

/** Counts the queued jobs anew where others add jobs to the adapter, or take some, of which nothing here has told. */
export class Recount {
  readonly #options: RecountOptions
  #doubted = false
  #counting: Promise<void> | undefined
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(options: RecountOptions) {
    this.#options = options
  }

  /** There may be jobs that are not counted here, or some that are and that others have taken. */
  doubt(): void {
    this.#doubted = true
  }

  /** Once this resolves the counts are those of this second, unless the adapter does not say: they stay as they were, and doubted. */
  async settle(): Promise<void> {
    const now = this.#options.clock.steady()
    if (this.#counting || !this.#doubted || now - this.#countedAt < AGE_MS) return this.#counting
    this.#countedAt = now
    this.#counting = this.#count().catch(() => this.doubt())
    await this.#counting
    this.#counting = undefined
  }

  async #count(): Promise<void> {
    const { clock, counters, inTurn, submitting } = this.#options
    this.#doubted = false
    const { changes, counts } = await readInTime(clock, async () => {
      await Promise.allSettled(submitting().values())
      return { changes: counters.changes, counts: await inTurn(() => this.#queued()) }
    })
    // nobody knows whether it has what has changed meanwhile
    if (counters.changes !== changes || submitting().size > 0) this.doubt()
    counters.setQueued(counts)
  }

  async #queued(): Promise<JobCount[]> {
    const { adapter } = this.#options
    if (adapter.counts) return (await adapter.counts()).filter(({ status }) => status === 'queued')
    const records = await listJobs(adapter, { status: ['queued'] })
    return records.map(({ info: { profile, status } }) => ({ profile, status, count: 1 }))
  }
}
