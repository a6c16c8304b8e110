import { toError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { SortedList } from '../lib/sorted-list.js'
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

/** Jobs that are read, or forgotten, at once. */
const BATCH = 500

/** Removes terminal jobs when they are old enough, and what is kept about them elsewhere. */
export class Retention {
  readonly #options: RetentionOptions
  readonly #finished = new SortedList<Finished>(
    (a, b) => a.finishedAt - b.finishedAt || (a.id < b.id ? -1 : +(a.id > b.id)),
  )
  #timer: Timer | undefined
  #stopped = false

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#schedule()
  }

  /** Takes up the jobs that ended in an earlier process. Call it before any can end in this one. */
  async takeUp(): Promise<void> {
    const filter: JobFilter = { status: TERMINAL_STATUSES, limit: BATCH }
    for (;;) {
      const records = await listJobs(this.#options.adapter, filter)
      for (const { info } of records) this.onTerminal(info)
      if (records.length < BATCH) return
      filter.after = placeOf(records.at(-1)!)
    }
  }

  onTerminal({ id, finishedAt = this.#options.clock.now(), sessionId, notes }: StoredJob): void {
    const sessions = [...(notes?.sessions ?? []), ...(sessionId === undefined ? [] : [sessionId])]
    this.#finished.add({ id, finishedAt, sessions })
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#timer = this.#options.clock.after(this.#options.sweepIntervalMs, () => void this.#sweep())
  }

  /** The sessions first: they can only be found through their jobs. */
  async #sweep(): Promise<void> {
    const { adapter, clock, logger, maxAgeMs } = this.#options
    try {
      const limit = clock.now() - maxAgeMs
      for (let old = this.#takeOld(limit); old.length > 0; old = this.#takeOld(limit)) await this.#forgetAll(old)
      await adapter.prune(maxAgeMs)
    } catch (error) {
      logger.error({ err: toError(error) }, 'old jobs could not be removed')
    }
    this.#schedule()
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

  /** @throws when a session could not be removed; its job is then tried again at the next sweep */
  async #forgetAll(jobs: readonly Finished[]): Promise<void> {
    const outcomes = await Promise.allSettled(jobs.map((job) => this.#forget(job)))
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected')
    for (const [index, { status }] of outcomes.entries()) if (status === 'rejected') this.#finished.add(jobs[index]!)
    if (failed.length > 0) throw failed[0]!.reason
  }

  async #forget({ id, sessions }: Finished): Promise<void> {
    // a session that is still there has ended with its run
    await Promise.all(sessions.map((session) => this.#options.sessions.close(session).catch(unlessGone)))
    this.#options.onForgotten(id)
  }
}
