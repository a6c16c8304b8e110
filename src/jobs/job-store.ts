import type { JobInfo, JobStatus } from '../../schemas/jobs.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import { type Persistence, persistently } from '../lib/patience.js'
import type { KeptDelivery } from '../webhooks/outbox.js'
import {
  type ClaimTerms,
  type DailyCharge,
  damageIn,
  expectedOf,
  type JobPatch,
  type JobRecord,
  type QueueAdapter,
} from './adapter.js'
import type { DailyBudget } from './budgets.js'
import type { JobCounters } from './counters.js'
import type { DelayedJobs } from './delayed-jobs.js'
import { LEGAL_TRANSITIONS } from './job.js'
import { type Announcement, UNHEARD } from './job-events.js'
import type { SharedQueue } from './shared-queue.js'

export interface JobStoreOptions extends Persistence {
  adapter: QueueAdapter
  clock: Clock
  counters: JobCounters
  due: DelayedJobs
  budget: DailyBudget
  /** Keeps a key before a job is added to an adapter that cannot take it along. */
  keepKey: ((key: KeptKey) => Promise<void>) | undefined
  /** Whether the adapter keeps what is to be delivered about a change in its write. */
  oneWrite: boolean
  /** Present when several nodes share the adapter. */
  shared: SharedQueue | undefined
}

/** Everything the queue writes goes through here, so that counters and timers always say what is stored. */
export class JobStore {
  readonly #options: JobStoreOptions

  constructor(options: JobStoreOptions) {
    this.#options = options
  }

  /** The day that what ends now is charged to. */
  get today(): string {
    return this.#options.budget.today
  }

  /** Stores a job, which is then to be adopted, or disowned. */
  async add(record: JobRecord, key?: KeptKey): Promise<void> {
    const { adapter, keepKey } = this.#options
    if (key && keepKey) await keepKey(key)
    await adapter.add(record, key)
  }

  /** Takes back a submission that was refused and came to be stored all the same. */
  async disown({ info: { id } }: JobRecord): Promise<void> {
    const { adapter, clock } = this.#options
    const canceled = { status: 'canceled', finishedAt: clock.now(), nextRunAt: undefined } as const
    await persistently(() => adapter.remove?.(id) ?? adapter.update(id, canceled).then(() => {}), this.#options)
  }

  /** Takes a job into account that was claimed. */
  take({ info }: JobRecord): void {
    this.#moved('queued', info)
  }

  /**
   * Takes back a cancel that was refused and came to be stored all the same.
   * @param before the job as it was
   * @param charge what it charged
   * @returns the job as it is then; null: it went on to somewhere else
   */
  async restore(before: JobRecord, charge?: DailyCharge): Promise<JobRecord | null> {
    const { adapter, budget } = this.#options
    const { status, nextRunAt, finishedAt, parkedAt, parkedExecutionId, usage, notes, error, result } = before.info
    const patch = { status, nextRunAt, finishedAt, parkedAt, parkedExecutionId, usage, notes, error, result }
    const restored = await this.#persistently(() => adapter.update(before.info.id, patch, 'canceled'))
    if (restored) this.#moved('canceled', restored.info)
    if (!charge?.tokens) return restored
    const { day, tokens } = charge
    const total = await persistently(() => adapter.addDailyTokens(day, -tokens), this.#options)
    budget.become(day, await this.#totalOf(day, total))
    return restored
  }

  /** Takes a job into account that is stored already. */
  adopt({ info }: JobRecord): void {
    this.#moved(undefined, info)
  }

  /** Takes the queued jobs into account that are stored already, without a look at each. @returns false when each has to be adopted */
  async adoptQueued(): Promise<boolean> {
    const { adapter, counters, due } = this.#options
    if (!adapter.counts || !adapter.delayed) return false
    const counts = await adapter.counts()
    await due.read()
    for (const { profile, status, count } of counts) if (status === 'queued') counters.addQueued(profile, count)
    return true
  }

  /** Whether several jobs are claimed at once, and in one write with what was asked for in the same turn. */
  get claimsTogether(): boolean {
    return this.#options.adapter.claim !== undefined
  }

  /** Claims at most so many jobs, which are then to be taken; one that `begin` began has its id as its `sessionId`. */
  async claim(limit: number, begin: ClaimTerms['begin']): Promise<JobRecord[]> {
    const { adapter, budget, shared } = this.#options
    if (!adapter.claim) {
      const record = await adapter.claimNext()
      return record ? [record] : []
    }
    const day = budget.today
    const terms: ClaimTerms = {
      ...(begin && { begin }),
      ...(budget.limit !== undefined && { tokens: { day, limit: budget.limit } }),
      ...(shared?.home !== undefined && { home: shared.home }),
    }
    const { jobs, paused } = await adapter.claim(limit, terms)
    // another process may have used them up
    if (paused && !budget.exhausted) budget.report(day, await adapter.dailyTokens(day))
    return jobs
  }

  /**
   * Changes a job, if it still has the status that it had. A store that fails is tried again until it works.
   * @param announcement of the change, which the caller then sends
   * @param once for somebody who waits: tried once
   * @returns null when it has another one, is gone or cannot be read any more; the announcement is withdrawn
   * @throws with `once` what the adapter throws, and then nothing was changed
   */
  async change(
    before: JobRecord,
    patch: JobPatch,
    announcement: Announcement,
    once = false,
  ): Promise<JobRecord | null> {
    const { id, status } = before.info
    const expected = expectedOf(before)
    assertLegal(before.info, patch.status)
    const write = once ? this.#once : this.#persistently
    const { adapter } = this.#options
    const record = await write((deliveries) => adapter.update(id, patch, expected, deliveries), announcement)
    if (record) this.#moved(status, record.info)
    else this.#notMade(announcement)
    return record
  }

  /** Ends an attempt and charges its tokens, once; see `change`. */
  async settle(
    before: JobRecord,
    patch: JobPatch,
    tokens: number,
    announcement: Announcement,
    once = false,
  ): Promise<JobRecord | null> {
    const record = await this.#settle(before, patch, tokens, announcement, once)
    if (record) this.#moved(before.info.status, record.info)
    else {
      this.#notMade(announcement)
      this.#lost(before)
    }
    return record
  }

  /** Puts a job back whose attempt did not begin; see `change`. */
  async putBack(before: JobRecord, patch: JobPatch): Promise<JobRecord | null> {
    const record = await this.change(before, patch, UNHEARD)
    if (!record) this.#lost(before)
    return record
  }

  /** Somebody else ended it; here it is over all the same. */
  #lost({ info: { profile, status } }: JobRecord): void {
    this.#options.counters.move(profile, status, 'canceled')
  }

  async #settle(
    before: JobRecord,
    patch: JobPatch,
    tokens: number,
    announcement: Announcement,
    once: boolean,
  ): Promise<JobRecord | null> {
    const { adapter, budget } = this.#options
    const { id } = before.info
    const expected = expectedOf(before)
    assertLegal(before.info, patch.status)
    const day = budget.today
    const write = once ? this.#once : this.#persistently
    if (adapter.settle) {
      const charge = { day, tokens }
      const settled = await write((told) => adapter.settle!(id, patch, charge, expected, told), announcement)
      if (!settled) return null
      budget.report(day, await this.#totalOf(day, settled.dailyTokens))
      return settled.record
    }
    const update = () => write((deliveries) => adapter.update(id, patch, expected, deliveries), announcement)
    const charge = async () => {
      const total = await this.#persistently(() => adapter.addDailyTokens(day, tokens))
      budget.report(day, await this.#totalOf(day, total))
    }
    // what may be refused comes before what may not; else a crash in between counts the tokens: the job is then found running, and its
    // usage is not known any more
    if (!once) await charge()
    const record = await update()
    if (once) await charge()
    return record
  }

  /** Asked for by itself where an adapter of a host gave none: what it has written is not written again for that. */
  async #totalOf(day: string, given: number | null | undefined): Promise<number> {
    return given ?? persistently(() => this.#options.adapter.dailyTokens(day), this.#options)
  }

  #moved(from: JobStatus | undefined, info: JobInfo): void {
    const { counters, due, shared } = this.#options
    const { id, profile, status, nextRunAt } = info
    if (from !== status) {
      counters.move(profile, from, status)
      if (status === 'queued') shared?.waits(nextRunAt === undefined)
      else shared?.changed()
    }
    if (status === 'queued' && nextRunAt !== undefined && (shared?.reminds(nextRunAt) ?? true)) due.set(id, nextRunAt)
    else due.delete(id)
  }

  /** @param announcement kept in the same write, or by an adapter that cannot do that at least in the same turn */
  readonly #once: Write = async (write, announcement) => {
    if (this.#options.oneWrite) return write(announcement?.kept)
    try {
      announcement?.keep()
      return await write()
    } catch (error) {
      announcement?.withdraw()
      throw error
    }
  }

  /** What was kept apart from a write that changed nothing is kept no more. */
  #notMade(announcement: Announcement): void {
    if (!this.#options.oneWrite) announcement.withdraw()
  }

  /** Tries until it works. What cannot be read any more is left as it is, for the next start: nobody else waits until it is mended. */
  readonly #persistently: Write = (write, announcement) =>
    persistently(async () => {
      try {
        return await this.#once(write, announcement)
      } catch (error) {
        const err = damageIn(error)
        if (!err) throw error
        this.#options.logger.error({ err }, 'the change of a job is left out')
        return null
      }
    }, this.#options)
}

/** @returns null: the job cannot be read */
type Write = <T>(
  write: (deliveries?: readonly KeptDelivery[]) => Promise<T>,
  announcement?: Announcement,
) => Promise<T | null>

/** A transition that is not in the table is a mistake of ours, never a caller's. */
function assertLegal({ id, status }: JobInfo, to: JobStatus | undefined): void {
  if (to !== undefined && to !== status && !LEGAL_TRANSITIONS[status].includes(to))
    throw new Error(`Job ${id} cannot go from ${status} to ${to}.`)
}
