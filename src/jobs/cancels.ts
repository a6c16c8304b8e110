import { GatewayError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { patiently, unavailable } from '../lib/patience.js'
import { getJob, type JobPatch, type JobRecord, type QueueAdapter } from './adapter.js'
import type { Attempts } from './attempts.js'
import type { Claims } from './claims.js'
import { JobElsewhere } from './elsewhere.js'
import { isTerminal, lastNotes, type StoredJob } from './job.js'
import type { JobEvents } from './job-events.js'
import type { JobStore } from './job-store.js'
import type { SharedQueue } from './shared-queue.js'

export interface CancelsOptions {
  adapter: QueueAdapter
  clock: Clock
  attempts: Attempts
  claims: Claims
  events: JobEvents
  store: JobStore
  /** Present when several nodes share the adapter. */
  shared: SharedQueue | undefined
  /** Jobs whose submission is not told yet. */
  submitting: ReadonlyMap<string, Promise<boolean>>
  onTerminal(job: StoredJob): void
}

/** A job that is between two places is looked for again after that long. */
const LOOK_AGAIN_MS = 50

/** Ends jobs for callers, at whatever point they are. */
export class Cancels {
  readonly #options: CancelsOptions

  constructor(options: CancelsOptions) {
    this.#options = options
  }

  /**
   * One that is over stays as it is.
   * @param removed its session, where that was removed for this: what is left of it is waited for
   * @returns the job as it is then
   * @throws SG_ERR_JOB_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE, and then it goes on · JobElsewhere
   */
  cancel(id: string, removed?: string): Promise<StoredJob> {
    const { attempts, claims, clock } = this.#options
    return patiently(clock, async (isRefused) => {
      for (;;) {
        const stored = () => claims.inTurn(() => this.#cancelStored(id, isRefused, removed))
        const over = (await attempts.cancel(id, isRefused)) ?? (await stored())
        if (isRefused()) throw unavailable()
        if (over && isTerminal(over.status)) return over
      }
    })
  }

  /** @returns undefined when the job went on to somewhere else meanwhile, or whoever asked was refused */
  async #cancelStored(
    id: string,
    isRefused: () => boolean,
    removed: string | undefined,
  ): Promise<StoredJob | undefined> {
    const { adapter, attempts, claims, clock, events, onTerminal, shared, store, submitting } = this.#options
    if (attempts.has(id) || isRefused()) return undefined
    const record = await getJob(adapter, id)
    if (!record) throw new GatewayError('SG_ERR_JOB_NOT_FOUND')
    if (isTerminal(record.info.status)) return record.info
    // nobody but who has it knows what to stop
    if (shared && record.info.status !== 'queued' && !(await this.#isLeft(shared, record, removed))) return undefined
    // who submits it is told of a refusal, not who cancels it
    await submitting.get(id)?.catch(() => {})
    const patch: JobPatch = {
      status: 'canceled',
      finishedAt: clock.now(),
      nextRunAt: undefined,
      notes: lastNotes(record.info),
    }
    const completed = events.announce('job_completed', record, { patch })
    const canceled = await store.change(record, patch, completed, true)
    if (!canceled) return undefined
    if (isRefused()) {
      completed.withdraw()
      await store.restore(record)
      claims.wake()
      return undefined
    }
    completed.send()
    onTerminal(canceled.info)
    return canceled.info
  }

  /**
   * Whether it is parked, no node has it, and its session is gone. A session that is left alone is another node's soon, together with its job.
   * @throws JobElsewhere when a living node has the job, or the session that it left
   */
  async #isLeft(
    { cluster }: SharedQueue,
    { info: { id, status, sessionId } }: JobRecord,
    removed: string | undefined,
  ): Promise<boolean> {
    const { owner } = (await cluster.placeOfJob(id)) ?? {}
    if (owner && owner.n !== cluster.n) throw new JobElsewhere(id, owner)
    if (!owner && status === 'parked' && sessionId !== undefined) {
      const place = await cluster.placeOfSession(sessionId)
      if (!place || place.ended !== undefined) return true
      if (place.owner && place.owner.n !== cluster.n && sessionId !== removed)
        throw new JobElsewhere(id, place.owner, sessionId)
    }
    await new Promise<void>((resolve) => this.#options.clock.after(LOOK_AGAIN_MS, resolve))
    return false
  }
}
