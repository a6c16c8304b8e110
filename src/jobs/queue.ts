import type {
  CreateJobRequest,
  JobEvent,
  JobInfo,
  ListJobsQuery,
  NextJobsQuery,
  QueueStats,
  WebhookDelivery,
} from '../../schemas/jobs.js'
import { GatewayError } from '../errors.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import { deferred } from '../lib/deferred.js'
import { copyOf } from '../lib/json-value.js'
import type { Logger } from '../lib/logger.js'
import { type Page, PageBuilder } from '../lib/paging.js'
import { patiently, persistently } from '../lib/patience.js'
import { present } from '../lib/present.js'
import type { Standstill } from '../lib/standstill.js'
import { type Principal, UNLIMITED, visible, visibleProfiles } from '../principal.js'
import type { ProfileCatalog } from '../profiles/catalog.js'
import type { Admission } from '../sessions/admission.js'
import type { OnCallCounted, OnTurnOver } from '../sessions/registry-options.js'
import type { Homes } from '../sessions/sharing.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { DeliveryOrigin } from '../webhooks/delivery.js'
import type { EgressGuard } from '../webhooks/egress.js'
import { signingKeys } from '../webhooks/signing.js'
import type { WebhookTarget } from '../webhooks/target.js'
import { getJob, nextJobs, type QueueAdapter } from './adapter.js'
import { withAttempt } from './attempt-meter.js'
import { Attempts } from './attempts.js'
import { DailyBudget } from './budgets.js'
import { Cancels } from './cancels.js'
import { Claims } from './claims.js'
import { JobCounters } from './counters.js'
import { DelayedJobs } from './delayed-jobs.js'
import type { StoredJob } from './job.js'
import { JobEvents, type QueueEvents } from './job-events.js'
import { jobPage } from './job-page.js'
import { JobStore } from './job-store.js'
import { QUEUE_DEFAULTS, type QueueServerOptions } from './options.js'
import { handedOut, inPage, patched } from './patch.js'
import { Recount } from './recount.js'
import { type RecoveryOptions, recover } from './recovery.js'
import { Retention } from './retention.js'
import type { RunLimits } from './run.js'
import type { JobSessions } from './sessions.js'
import { type QueueCluster, SharedQueue } from './shared-queue.js'
import { Submissions, type Submitter } from './submissions.js'

/** As many are listed of what runs next. */
const NEXT_JOBS = 50

export interface JobQueueOptions extends QueueServerOptions {
  adapter: QueueAdapter
  clock: Clock
  logger: Logger
  standstill?: Standstill | undefined
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  sessions: JobSessions
  admission: Pick<Admission, 'examine'>
  profiles: Pick<ProfileCatalog, 'recall' | 'resolve'> & Partial<Pick<ProfileCatalog, 'refreshed'>>
  deliverer: WebhookDeliverer
  /** Judges the webhooks that callers name. */
  guard: EgressGuard
  /** Milliseconds that a limit on parked time leaves a job after a restart. */
  expiredGraceMs: number
  /** Keeps a key before a job is added to an adapter that cannot take it along. */
  keepKey?: ((key: KeptKey) => Promise<void>) | undefined
  /** Other nodes that share the adapter. */
  cluster?: QueueCluster | undefined
  /** Where jobs may have to stay with the node that took them in; absent: they go anywhere. */
  homes?: Homes | undefined
  /** Whether the adapter keeps what is to be delivered about a change in its write. Default false. */
  oneWrite?: boolean
}

/**
 * Jobs: sessions that run unattended, as many at a time as there are slots, in the order of priority and submission. What a job may
 * go through stands in `job.ts`, what one attempt does in `run.ts`.
 */
export class JobQueue {
  readonly #options: JobQueueOptions
  readonly #maxConcurrency: number
  readonly #counters = new JobCounters()
  readonly #due: DelayedJobs
  readonly #budget: DailyBudget
  readonly #shared: SharedQueue | undefined
  readonly #recount: Recount
  readonly #store: JobStore
  readonly #events: JobEvents
  readonly #attempts: Attempts
  readonly #retention: Retention | undefined
  readonly #submissions: Submissions
  readonly #claims: Claims
  readonly #cancels: Cancels
  readonly #started = deferred()
  #draining = false
  readonly #unsubscribe: (() => void)[] = []

  constructor(options: JobQueueOptions) {
    this.#options = options
    const { adapter, clock, logger, retryAfter, sessions, guard, profiles } = options
    this.#maxConcurrency = options.maxConcurrency ?? QUEUE_DEFAULTS.maxConcurrency
    this.#due = new DelayedJobs({ clock, adapter, logger, retryAfter, onDue: () => this.#claims.wake() })
    this.#budget = new DailyBudget({
      limit: options.dailyTokenLimit,
      clock,
      adapter,
      onRollover: () => this.#claims.wake(),
    })
    const { cluster, homes } = options
    this.#shared = cluster && new SharedQueue({ cluster, adapter, clock, budget: this.#budget, home: homes?.node })
    this.#recount = new Recount({
      ...{ adapter, clock, counters: this.#counters },
      submitting: () => this.#submissions.untold,
      inTurn: (work) => this.#claims.inTurn(work),
    })
    this.#store = new JobStore({
      shared: this.#shared,
      adapter,
      clock,
      logger,
      retryAfter,
      counters: this.#counters,
      due: this.#due,
      budget: this.#budget,
      keepKey: options.keepKey,
      oneWrite: options.oneWrite ?? false,
    })
    this.#events = eventsFor(options)
    this.#retention = retentionFor(options)
    this.#attempts = new Attempts({
      ...{ clock, logger, sessions },
      store: this.#store,
      events: this.#events,
      limits: limitsOf(options),
      recallProfile: (name, generation) => {
        const recall = () =>
          generation === undefined ? profiles.resolve(name, UNLIMITED) : profiles.recall(name, generation)
        return profiles.refreshed?.()?.then(recall) ?? recall()
      },
      onSlot: () => this.#claims.wakeSoon(),
      onTerminal: (job) => this.#retention?.onTerminal(job),
      onUnbegun: () => this.#claims.awaitStorage(),
    })
    this.#submissions = new Submissions({
      ...{ clock, guard, admission: options.admission, homes },
      bound: options.maxQueuedJobs ?? QUEUE_DEFAULTS.maxQueuedJobs,
      counters: this.#counters,
      recount: this.#recount,
      shared: this.#shared,
      store: this.#store,
      events: this.#events,
      started: this.#started.promise,
      isDraining: () => this.#draining,
      claims: () => this.#claims,
    })
    this.#claims = new Claims({
      ...{ adapter, clock, logger, sessions, maxConcurrency: this.#maxConcurrency, standstill: options.standstill },
      ...{
        counters: this.#counters,
        recount: this.#recount,
        due: this.#due,
        budget: this.#budget,
        store: this.#store,
        attempts: this.#attempts,
        shared: this.#shared,
      },
      submitting: this.#submissions.untold,
      onPause: (paused) => this.#events.budgetChanged(paused),
    })
    this.#cancels = new Cancels({
      ...{ adapter, clock },
      ...{ attempts: this.#attempts, claims: this.#claims, events: this.#events },
      ...{ store: this.#store, shared: this.#shared, submitting: this.#submissions.untold },
      onTerminal: (job) => this.#retention?.onTerminal(job),
    })
    this.#unsubscribe.push(sessions.follow('room', () => this.#claims.wake()))
    const { onEvent } = options
    if (onEvent) this.#unsubscribe.push(this.on('job_event', ({ event }) => onEvent(copyOf(event))))
  }

  /** For whoever tells of sessions. */
  get onTurnOver(): OnTurnOver {
    return this.#attempts.onTurnOver
  }

  /** As `onTurnOver`. */
  get onCallCounted(): OnCallCounted {
    return this.#attempts.onCallCounted
  }

  /** Takes up what is stored, then begins to claim. Call it once, after the sessions that were parked are there. */
  async start(): Promise<void> {
    const { adapter } = this.#options
    await this.#budget.refresh()
    await this.#retention?.start()
    await this.#recover(this.#shared && {})
    if (this.#shared) this.#hearOthers(this.#shared)
    const unsubscribe = await adapter.onWork?.(() => {
      this.#recount.doubt()
      this.#claims.wake()
    })
    if (unsubscribe) this.#unsubscribe.push(unsubscribe)
    this.#started.resolve()
    if (!this.#draining) this.#claims.open()
  }

  #recover(shared: RecoveryOptions['shared']): Promise<void> {
    const { adapter, sessions, logger, expiredGraceMs: graceMs } = this.#options
    return recover({ adapter, sessions, logger, graceMs, shared, store: this.#store, attempts: this.#attempts })
  }

  #hearOthers(shared: SharedQueue): void {
    const { cluster } = shared
    const wake = () => {
      shared.changed()
      this.#claims.wake()
    }
    this.#unsubscribe.push(cluster.on('work', wake), cluster.on('nodes', wake), cluster.on('thawed', wake))
  }

  /** These are about to be taken up, their sessions before them: what those tell is kept for them. */
  expect(jobIds: readonly string[]): void {
    if (jobIds.length > 0) this.#attempts.expect()
  }

  /**
   * Goes on with jobs that were another node's and are this one's now, as after a restart. Their sessions were taken up just before, and
   * it was told to `expect` them before those; call it once for what the cluster told to be `taken`.
   */
  async takeUp(jobIds: readonly string[]): Promise<void> {
    if (jobIds.length === 0) return
    const taken = new Set(jobIds)
    await this.#started.promise
    // what is claimed meanwhile is under way here, too, and nobody's else
    const recovered = () =>
      this.#claims.inTurn(async () => {
        // what is not taken up is left to the next process
        if (!this.#draining) await this.#recover({ isTaken: (id) => taken.has(id) })
      })
    const { logger, retryAfter } = this.#options
    await persistently(recovered, { logger, retryAfter })
    this.#shared?.changed()
    this.#claims.wake()
  }

  /**
   * Accepts a job; it is stored when this resolves.
   * @throws GatewayError as a session's creation would, and for a webhook that may not be reached or whose headers are not allowed
   */
  submit(wanted: CreateJobRequest, by: Submitter = {}): Promise<JobInfo> {
    return this.#submissions.submit(wanted, by)
  }

  /** Another node has told something: what was counted is from before. */
  changedElsewhere(): void {
    this.#shared?.changed()
  }

  /** Whether this process runs it, or waits with it. */
  isUnderWay(id: string): boolean {
    return this.#attempts.has(id)
  }

  async get(id: string): Promise<JobInfo | undefined> {
    const info = await this.#find(id)
    return info && handedOut(info)
  }

  /** @throws SG_ERR_JOB_NOT_FOUND, the same for one that is not there and one that is not theirs */
  async visibleJob(id: string, principal: Principal): Promise<JobInfo> {
    const info = await patiently(this.#options.clock, () => this.#find(id))
    if (!info || !visible(principal, info.profile)) throw new GatewayError('SG_ERR_JOB_NOT_FOUND')
    return handedOut(info)
  }

  async #find(id: string): Promise<StoredJob | undefined> {
    const live = this.#attempts.live(id)
    if (live) return live
    const stored = await getJob(this.#options.adapter, id)
    return stored ? this.#seen(stored.info) : undefined
  }

  /** A job that was read, as it is by now; the session of one that was just claimed is not there yet. What other nodes run cannot be told from it. */
  #seen(stored: StoredJob): StoredJob {
    const live = this.#attempts.live(stored.id)
    if (live) return live
    const isBegun = stored.status !== 'running' || this.#shared !== undefined || !this.#claims.isClaiming
    return isBegun ? withAttempt(stored) : patched(stored, { sessionId: undefined })
  }

  /** One page of the jobs that a caller may see, newest first. */
  page(query: ListJobsQuery, principal: Principal = UNLIMITED): Promise<Page<JobInfo>> {
    const { adapter, clock } = this.#options
    const shownAs = (job: StoredJob) => copyOf(inPage(this.#seen(job)))
    return patiently(clock, () => jobPage(adapter, query, principal, shownAs))
  }

  /** The first of the queued jobs that a caller may see, in the order in which they begin: as many as a page has room for. */
  next({ limit = NEXT_JOBS }: NextJobsQuery = {}, principal: Principal = UNLIMITED): Promise<JobInfo[]> {
    const { adapter, clock } = this.#options
    const asked = { limit, profiles: visibleProfiles(principal), now: clock.now() }
    return patiently(clock, async () => {
      const page = new PageBuilder<JobInfo>(limit)
      // one by one: each has its prompt whole
      for (const id of await nextJobs(adapter, asked)) {
        const record = await getJob(adapter, id)
        const seen = record && this.#seen(record.info)
        if (seen?.status !== 'queued' || !visible(principal, seen.profile)) continue
        if (!page.add(copyOf(inPage(seen)))) break
      }
      return page.items
    })
  }

  /** The last attempts to deliver a job's events to its webhook, newest first. */
  deliveries(id: string): Promise<WebhookDelivery[]> {
    return this.#options.deliverer.deliveries(id)
  }

  /** Where an event goes that was kept for a job's webhook; nowhere when what it tells of was never written. */
  async targetOf(event: JobEvent, origin: DeliveryOrigin & { kind: 'job' }): Promise<WebhookTarget | undefined> {
    const { type, job } = event
    if (type === 'job_completed') {
      const stored = await getJob(this.#options.adapter, job.id)
      if (stored && stored.info.finishedAt !== job.finishedAt) return undefined
    }
    return this.#events.targetOf(job.id, origin)
  }

  /**
   * Cancels a job at whatever point it is; one that is over stays as it is.
   * @param removed id of its session, where that was removed at another node for this; it may be on its lists for a moment
   * @returns the job as it is then
   * @throws SG_ERR_JOB_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE, and then it goes on · JobElsewhere when another node has to do it
   */
  async cancel(id: string, removed?: string): Promise<JobInfo> {
    return handedOut(await this.#cancels.cancel(id, removed))
  }

  /** Counts are of the jobs that the caller may see; the budget is everybody's. */
  async stats(principal: Principal = UNLIMITED): Promise<QueueStats> {
    const { sessionTokenLimit, dailyTokenLimit } = this.#options
    if (!this.#shared) await this.#recount.settle()
    const counts = this.#shared ? await this.#shared.visibleTo(principal) : this.#counters.visibleTo(principal)
    const { exhausted, resumesAt, used } = this.#budget
    return {
      maxConcurrency: this.#shared?.slots ?? this.#maxConcurrency,
      ...counts,
      paused: exhausted,
      dailyTokensUsed: used,
      ...present({ sessionTokenLimit, dailyTokenLimit, resumesAt }),
    }
  }

  /** @returns a function that ends the observation; a listener that throws is logged and breaks nothing */
  on<E extends keyof QueueEvents & string>(event: E, listener: (payload: QueueEvents[E]) => unknown): () => void {
    return this.#events.on(event, listener)
  }

  /** No more submissions and no more claims; what runs may end. */
  drain(): void {
    if (!this.#draining) this.#events.draining()
    this.#draining = true
    // who has submitted before a start that does not come any more is told
    this.#started.resolve()
    this.#attempts.draining = true
    this.#claims.close()
  }

  /** Resolves when what runs has ended and is written down, and refused submissions are taken back; jobs that are parked stay so. */
  async close(): Promise<void> {
    this.drain()
    // what still comes to be stored of a refused one would run in the next process
    await this.#submissions.settled()
    await this.#claims.idle()
    await this.#attempts.settled()
    this.#attempts.stop()
    this.#due.stop()
    this.#budget.stop()
    this.#retention?.stop()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }
}

function eventsFor({ clock, logger, deliverer, guard, ...options }: JobQueueOptions): JobEvents {
  return new JobEvents({
    clock,
    logger,
    webhooks: {
      deliverer,
      guard,
      signingKeys: signingKeys(options.webhookSecret, 'queue.webhookSecret'),
      attempts: options.webhookAttempts ?? QUEUE_DEFAULTS.webhookAttempts,
      retryDelayMs: options.webhookRetryDelayMs ?? QUEUE_DEFAULTS.webhookRetryDelayMs,
    },
  })
}

/** Undefined: jobs are kept for ever. */
function retentionFor({ clock, logger, adapter, sessions, deliverer, retention }: JobQueueOptions) {
  if (!retention) return undefined
  return new Retention({
    ...{ clock, logger, adapter, sessions },
    maxAgeMs: retention.maxAgeMs,
    sweepIntervalMs: retention.sweepIntervalMs ?? QUEUE_DEFAULTS.sweepIntervalMs,
    onForgotten: (jobId) => deliverer.forget(jobId),
  })
}

const limitsOf = (options: JobQueueOptions): RunLimits => ({
  tokens: options.sessionTokenLimit,
  durationMs: options.maxJobDurationMs,
  parkedMs: options.maxParkedDurationMs,
  killGraceMs: options.killGraceMs ?? QUEUE_DEFAULTS.killGraceMs,
})
