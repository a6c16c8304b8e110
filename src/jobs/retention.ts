import { toError } from '../errors.js'
import { delayAfter } from '../lib/backoff.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { byText, SortedList } from '../lib/sorted-list.js'
import { type JobFilter, listJobs, placeOf, type QueueAdapter } from './adapter.js'
import { type StoredJob, TERMINAL_STATUSES } from './job.js'
import { type JobSessions, unlessGone } from './sessions.js'

export interface RetentionOptions {
  maxAgeMs: number
  sweepIntervalMs: number
  clock: Clock
  logger: Logger
  adapter: QueueAdapter
  sessions: JobSessions
  onForgotten(jobId: string): void
}

interface Finished {
  id: string
  finishedAt: number
  /** Of all its attempts. */
  sessions: readonly string[]
}

/** After sweeps that failed the next one comes ever later, until they are so far apart, however short the interval. */
const LONGEST_MS = 1_000
/** Jobs that are read, or forgotten, at once. */
const BATCH = 500

/** Removes terminal jobs when they are old enough, and what is kept about them elsewhere. */
export class Retention {
  readonly #options: RetentionOptions
  /** Of an adapter that has no `ended`. */
  readonly #finished = new SortedList<Finished>((a, b) => a.finishedAt - b.finishedAt || byText(a.id, b.id))
  #timer: Timer | undefined
  /** Sweeps that failed, in a row. */
  #failed = 0
  #stopped = false

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Takes up the jobs that ended in an earlier process, and begins to sweep: the adapter has to be open. Call it before any can end in this one. */
  async start(): Promise<void> {
    if (!this.#options.adapter.ended) await this.#takeUp()
    this.#schedule()
  }

  async #takeUp(): Promise<void> {
    const { adapter } = this.#options
    const filter: JobFilter = { status: TERMINAL_STATUSES, limit: BATCH }
    for (;;) {
      const records = await listJobs(adapter, filter)
      for (const { info } of records) this.onTerminal(info)
      if (records.length < BATCH) return
      filter.after = placeOf(records.at(-1)!)
    }
  }

  onTerminal(job: StoredJob): void {
    if (!this.#options.adapter.ended) this.#finished.add(finished(job, this.#options.clock.now()))
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #schedule(): void {
    if (this.#stopped) return
    const { clock, sweepIntervalMs: firstMs } = this.#options
    const inMs =
      this.#failed === 0 ? firstMs : delayAfter(this.#failed, { firstMs, longestMs: Math.max(firstMs, LONGEST_MS) })
    this.#timer = clock.after(inMs, () => void this.#sweep())
  }

  async #sweep(): Promise<void> {
    try {
      if (this.#options.adapter.ended) await this.#removeEnded()
      else await this.#prune()
      this.#failed = 0
    } catch (error) {
      this.#failed++
      this.#options.logger.error({ err: toError(error) }, 'old jobs could not be removed')
    }
    this.#schedule()
  }

  /** @throws when a session, or a job, could not be removed; both are tried again at the next sweep */
  async #removeEnded(): Promise<void> {
    const { adapter, maxAgeMs, clock } = this.#options
    // the ones that stay come again before the others, each time
    const stay = new Map<string, unknown>()
    while (!this.#stopped) {
      const limit = BATCH + stay.size
      const old = await adapter.ended!(maxAgeMs, limit)
      const next = old.filter(({ id }) => !stay.has(id))
      await Promise.all(
        next.map(async (job) => {
          try {
            await this.#forget(finished(job, clock.now()))
            await adapter.remove!(job.id)
          } catch (error) {
            stay.set(job.id, error)
          }
        }),
      )
      // a storage that takes nothing is not asked for all of them
      if (old.length < limit || next.every(({ id }) => stay.has(id))) break
    }
    for (const error of stay.values()) throw error
  }

  /** @throws when a session could not be removed; it is tried again at the next sweep, whatever became of its job */
  async #prune(): Promise<void> {
    const { adapter, clock, maxAgeMs } = this.#options
    const limit = clock.now() - maxAgeMs
    const stay: Finished[] = []
    let error: unknown
    let isAnyGone = false
    for (let old = this.#takeOld(limit); old.length > 0 && !this.#stopped; old = this.#takeOld(limit))
      await Promise.all(
        old.map(async (job) => {
          try {
            await this.#forget(job)
            isAnyGone = true
          } catch (refusal) {
            error ??= refusal
            stay.push(job)
          }
        }),
      )
    for (const job of stay) this.#finished.add(job)
    // the adapter would remove the others, too, whose sessions are left
    if (this.#stopped) return
    // one session that stays keeps no other job; where all do, the storage takes nothing
    if (stay.length === 0 || isAnyGone) await adapter.prune(maxAgeMs)
    if (stay.length > 0) throw error
  }

  #takeOld(limit: number): Finished[] {
    const old: Finished[] = []
    for (
      let job = this.#finished.first;
      job && job.finishedAt <= limit && old.length < BATCH;
      job = this.#finished.first
    ) {
      this.#finished.delete(job)
      old.push(job)
    }
    return old
  }

  /** The sessions first: they can only be found through their jobs. */
  async #forget({ id, sessions }: Finished): Promise<void> {
    // a session that is still there has ended with its run
    await Promise.all(sessions.map((session) => this.#options.sessions.close(session).catch(unlessGone)))
    this.#options.onForgotten(id)
  }
}

const finished = ({ id, finishedAt, sessionId, notes }: StoredJob, now: number): Finished => ({
  id,
  finishedAt: finishedAt ?? now,
  sessions: [...(notes?.sessions ?? []), ...(sessionId === undefined ? [] : [sessionId])],
})

/** Whether a job that was there is there no more. */
export const isPruned =
  (adapter: Pick<QueueAdapter, 'get'>) =>
  async (jobId: string): Promise<boolean> =>
    !(await adapter.get(jobId))
