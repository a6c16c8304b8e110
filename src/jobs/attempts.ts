import type { JobProgress } from '../../schemas/jobs.js'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { newId } from '../lib/new-id.js'
import { within } from '../lib/within.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { Place } from '../sessions/places.js'
import type { Observed, OnCallCounted, OnTurnOver, SessionEventTold } from '../sessions/registry-options.js'
import type { JobPatch, JobRecord } from './adapter.js'
import { AttemptEnds } from './attempt-ends.js'
import { stricter } from './budgets.js'
import type { AttemptOutcome, StoredJob } from './job.js'
import { type Announcement, type JobEvents, UNHEARD, withStart } from './job-events.js'
import type { JobStore } from './job-store.js'
import { patched } from './patch.js'
import { JobRun, type RunLimits, type RunOwner } from './run.js'
import type { JobSessions } from './sessions.js'
import { Slots } from './slots.js'
import { MissedEvents, type Tracked, tracked } from './tracked.js'

export interface AttemptsOptions {
  clock: Clock
  logger: Logger
  sessions: JobSessions
  store: JobStore
  events: JobEvents
  limits: RunLimits
  /** @throws GatewayError when the profile is no longer who it was */
  recallProfile(name: string, generation: string | undefined): ResolvedProfile | Promise<ResolvedProfile>
  /** A slot became free, or a job can be claimed. */
  onSlot(): void
  onTerminal(job: StoredJob): void
  /** The storage refused what a run begins with. */
  onUnbegun(): void
}

/** A session in one of these has a turn that is not over. */
const IN_A_TURN: readonly SessionStatus[] = ['running', 'awaiting_approval', 'parked']

/** Of the session of a job that another process had under way. */
interface LeftSession {
  /** What it has told since then to nobody who followed it. */
  unseen: readonly SessionEventTold[] | undefined
  /** Whether somebody has closed it. */
  isCanceled: boolean
  /** As it was last written, when another node has it by now, too. */
  written: SessionInfo | undefined
}

const isRun = ({ jobId }: Observed): boolean => jobId !== undefined
const STOPPED: AttemptOutcome = { status: 'failed', error: 'The gateway stopped during the run.' }

/** Whoever cancels a parked job waits that long until it is written that nothing wakes it: after a crash a store may have its session, and no job. */
const DISCARD_MS = 1_000

/** So many claims of a job may be cut off before its session begins without one counting as an attempt. */
const MAX_UNBORN = 3

/** The runs of this process: what happens to them is written down, then told. */
export class Attempts implements RunOwner {
  readonly clock: Clock
  readonly sessions: JobSessions
  draining = false
  readonly #options: AttemptsOptions
  readonly #byJob = new Map<string, Tracked>()
  readonly #bySession = new Map<string, Tracked>()
  readonly #slots: Slots
  readonly #ends: AttemptEnds
  readonly #missed = new MissedEvents()
  readonly #unsubscribe: (() => void)[]

  constructor(options: AttemptsOptions) {
    this.#options = options
    this.clock = options.clock
    this.sessions = options.sessions
    this.#slots = new Slots(options.onSlot)
    this.#ends = new AttemptEnds({
      ...{ ...options, slots: this.#slots },
      isTracked: (tracked) => this.#byJob.get(tracked.run.record.info.id) === tracked,
      forget: ({ run }) => this.#byJob.delete(run.record.info.id),
    })
    this.#unsubscribe = [
      this.sessions.follow('session_event', (told) => this.#onEvent(told), isRun),
      this.sessions.follow('session_held', (told) => this.#bySession.get(told.sessionId)?.run.onHeld(told.executionId)),
      this.sessions.follow('session_removed', ({ sessionId }) => this.#bySession.get(sessionId)?.run.cancel()),
    ]
  }

  /** How many slots are taken. */
  get slots(): number {
    return this.#slots.taken(this.#byJob.size)
  }

  /** Tokens that are used up and that no total of a day has yet. */
  get uncharged(): number {
    return this.#ends.uncharged
  }

  /** The live state of a job that this process runs; its session is told once it is there. */
  live(jobId: string): StoredJob | undefined {
    const tracked = this.#byJob.get(jobId)
    if (!tracked) return undefined
    const { ahead, run } = tracked
    const job = ahead?.shown ?? run.live
    return run.isBorn ? job : patched(job, { sessionId: undefined })
  }

  has(jobId: string): boolean {
    return this.#byJob.has(jobId)
  }

  /** Whether a session is a run of this process. */
  follows(sessionId: string): boolean {
    return this.#bySession.has(sessionId)
  }

  /** Resolves when the attempt that a job is in was written and told to its end; `undefined`: it is in none. */
  over(jobId: string): Promise<void> | undefined {
    return this.#byJob.get(jobId)?.settled
  }

  /** Begins an attempt with a job that was just claimed. @param sessionId of the attempt; it may be begun with it already */
  start(record: JobRecord, place: Place, sessionId: string): void {
    const run = new JobRun(this, record, this.#limitsOf(record), { place, sessionId })
    if (record.info.sessionId === sessionId) {
      const { info, request } = record
      const tracked = this.#track(run, { request, info: patched(info, { startedAt: undefined, sessionId: undefined }) })
      this.#write(tracked, () => {
        if (!run.ended) this.#begin(tracked)
      })
      return
    }
    const tracked = this.#track(run, record)
    this.#write(tracked, async () => {
      if (run.ended) return
      const cleared = { sdkSessionId: undefined, nextRunAt: undefined, result: undefined, error: undefined }
      const patch = { startedAt: this.clock.now(), sessionId: run.sessionId, ...cleared }
      await this.#change(tracked, patch, UNHEARD)
      if (!run.ended) this.#begin(tracked)
    })
  }

  #begin(tracked: Tracked): void {
    const { run } = tracked
    const { profile, notes } = run.record.info
    tracked.start = this.#options.events.begin(run.record, run.live)
    run.begin(() => this.#options.recallProfile(profile, notes?.generation), tracked.start)
  }

  #onEvent(told: SessionEventTold): void {
    const tracked = this.#bySession.get(told.sessionId)
    if (tracked) tracked.run.onEvent(told)
    else this.#missed.note(told)
  }

  /** Has the end of the job and of its turn be one write. */
  readonly onTurnOver: OnTurnOver = (sessionId, untold) => {
    const tracked = this.#bySession.get(sessionId)
    const shown = tracked?.run.live
    if (shown && tracked.run.endAhead(untold)) tracked.ahead = { shown, durable: this.sessions.told(sessionId) }
  }

  /** A model answers sooner than what its last answer used is written: the call after the one that was too many would be made. */
  readonly onCallCounted: OnCallCounted = (sessionId, untold) => {
    this.#bySession.get(sessionId)?.run.onCallCounted(untold)
  }

  /**
   * Goes on with a job that was running or parked when an earlier process stopped: with the turn of its session, if that is parked or has
   * been woken again. Without such a turn the attempt has failed; without a session that began it does not count.
   * @param left what there is of its session
   */
  takeUp(record: JobRecord, graceMs: number, { unseen = [], isCanceled, written }: LeftSession): void {
    const { sessionId = newId(), status } = record.info
    const run = new JobRun(this, record, this.#limitsOf(record), { sessionId })
    const tracked = this.#track(run)
    const missed = [...unseen, ...this.#missed.of(sessionId)]
    const session = this.sessions.here(sessionId) ?? missed.at(-1)?.session
    const { notes: { sessions: earlier = [], unborn = 0, removed } = {} } = record.info
    const isBegun = record.info.sessionId !== undefined && !earlier.includes(sessionId)
    const isBorn = isBegun && (session !== undefined || written !== undefined || !this.sessions.outlast)
    // one that ends the process each time before its session is there has its attempts counted in the end
    if (!session && !written && removed === sessionId) run.abandon(undefined, { status: 'canceled' })
    else if (status === 'running' && !isBorn && unborn < MAX_UNBORN) {
      const notes = { ...record.info.notes, unborn: unborn + 1 }
      tracked.claimed = { ...record, info: patched(record.info, { startedAt: undefined, sessionId: undefined, notes }) }
      run.abandon(undefined, { ...STOPPED, unbegun: true })
    } else if (session && (missed.length > 0 || IN_A_TURN.includes(session.status))) {
      if (status === 'parked') this.#slots.park(tracked, true)
      run.adopt(session, graceMs)
      run.catchUp(missed)
      // it was taken up before its engine was given anything, and nothing more will come of it
      if (!run.ended && this.sessions.here(sessionId)?.status === 'idle') run.abandon(undefined, STOPPED)
    } else if (status === 'parked' && session?.status !== 'idle' && !session?.numTurns)
      // one that came to the end of its turn was cut off before that was written down here
      run.abandon(session, { status: 'failed', error: 'The session of the parked job is gone.', final: true })
    else run.abandon(session ?? written, isCanceled ? { status: 'canceled' } : STOPPED)
  }

  /** Jobs of another process are about to be taken up, their sessions before them: nothing of those is missed until `tookUpAll`. */
  expect(): void {
    this.#missed.expect()
  }

  /** Every job of an earlier process was taken up. */
  tookUpAll(): void {
    this.#missed.tookUp()
  }

  /**
   * Cancels a run, whatever it is in the middle of: that it is canceled is written first, then it is stopped.
   * @param isRefused whether whoever cancels has given up by now: then it goes on
   * @returns the job once the end of its attempt is written; undefined when it is not running here
   * @throws SG_ERR_STORE_UNAVAILABLE, and then it goes on
   */
  async cancel(jobId: string, isRefused: () => boolean): Promise<StoredJob | undefined> {
    const tracked = this.#byJob.get(jobId)
    if (!tracked) return undefined
    const { run } = tracked
    await new Promise<void>((resolve, reject) => {
      // its end is being written already
      if (run.ended) run.cancel(isRefused)
      else this.#write(tracked, () => this.#ends.cancel(tracked, isRefused).catch(reject))
      void tracked.settled.then(resolve)
    })
    if (run.wasParked) await within(DISCARD_MS, run.closed, { clock: this.clock })
    return run.record.info
  }

  /** Resolves when the ends are stored whose slots were given away already. */
  freed(): Promise<void> {
    return this.#slots.stored()
  }

  /** Resolves when the end of every run is written, or how it was left for the next process. */
  async settled(): Promise<void> {
    const goesOn = ({ run }: Tracked) => !run.ended && !run.parked && this.sessions.serves(run.sessionId)
    const runs = [...this.#byJob.values()]
    await Promise.all(runs.map((tracked) => (goesOn(tracked) ? tracked.settled : tracked.writing)))
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const { run } of this.#byJob.values()) run.leave()
    this.#bySession.clear()
  }

  // ── what runs go through ──────────────────────────────────────────────────────────────────────────────────────────────────

  onProgress(run: JobRun, progress: JobProgress): void {
    const { measured } = run
    this.#writeFor(run, ({ canceled }) => {
      // its end is written, and told next
      if (!canceled) this.#options.events.emit('job_progress', run.record, { job: run.shownWith(measured), progress })
    })
  }

  onParked(run: JobRun, executionId: string | undefined): void {
    const { notes, sdkSessionId, measured } = run
    this.#writeFor(run, async (tracked) => {
      const patch: JobPatch = {
        status: 'parked',
        parkedAt: this.clock.now(),
        parkedExecutionId: executionId,
        sdkSessionId,
        notes: { ...run.record.info.notes, attempt: notes },
      }
      const job = run.shownWith(measured)
      const told = this.#options.events.announce('job_parked', run.record, { job, patch, executionId })
      if (!(await this.#change(tracked, patch, told))) return
      // it may have gone on, or ended, while this was written
      if (run.parked) this.#slots.park(tracked, true)
    })
  }

  onResumed(run: JobRun): void {
    const { notes, measured } = run
    const tracked = this.#byJob.get(run.record.info.id)
    if (tracked?.run === run) this.#slots.park(tracked, false)
    this.#writeFor(run, async (running) => {
      const executionId = run.record.info.parkedExecutionId
      const cleared = { parkedAt: undefined, parkedExecutionId: undefined }
      const patch = { ...cleared, status: 'running', notes: { ...run.record.info.notes, attempt: notes } } as const
      const job = run.shownWith(measured)
      const told = this.#options.events.announce('job_resumed', run.record, { job, patch, executionId })
      await this.#change(running, patch, told)
    })
  }

  onEnded(run: JobRun, outcome: AttemptOutcome): void {
    const tracked = this.#byJob.get(run.record.info.id)
    if (tracked?.run === run) this.#finish(tracked, outcome)
  }

  onFault(run: JobRun, error: unknown): void {
    this.#options.logger.error({ err: toError(error), jobId: run.record.info.id }, 'the session of a job did not start')
  }

  // ── the end of an attempt ─────────────────────────────────────────────────────────────────────────────────────────────────

  #finish(tracked: Tracked, outcome: AttemptOutcome): void {
    const { run } = tracked
    this.#slots.park(tracked, false)
    this.#bySession.delete(run.sessionId)
    // of one that an earlier process left the storage has refused nothing to this one
    if (outcome.unbegun && !this.#missed.expected) this.#options.onUnbegun()
    this.#write(tracked, () => this.#ends.finish(tracked, outcome))
  }

  // ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #track(run: JobRun, claimed?: JobRecord): Tracked {
    const made = tracked(run, claimed)
    this.#byJob.set(run.record.info.id, made)
    this.#bySession.set(run.sessionId, made)
    return made
  }

  #writeFor(run: JobRun, work: (tracked: Tracked) => void | Promise<void>): void {
    const tracked = this.#byJob.get(run.record.info.id)
    if (tracked?.run === run) this.#write(tracked, () => work(tracked))
  }

  #write(tracked: Tracked, work: () => void | Promise<void>): void {
    tracked.writing = tracked.writing.then(work).catch((error) => {
      const { id } = tracked.run.record.info
      this.#options.logger.error({ err: toError(error), jobId: id }, 'a change of a job could not be written')
    })
  }

  /** @returns false when somebody else changed the job: the run is over, and nothing more is told about it */
  async #change({ run, start }: Tracked, patch: JobPatch, told: Announcement): Promise<boolean> {
    const announced = withStart(start, told)
    const record = await this.#options.store.change(run.record, patch, announced)
    if (!record) {
      run.cancel()
      return false
    }
    run.record = record
    announced.send()
    return true
  }

  #limitsOf({ request }: JobRecord): RunLimits {
    const { limits } = this.#options
    return {
      ...limits,
      tokens: stricter(request.maxTokens, limits.tokens),
      durationMs: stricter(request.maxDurationMs, limits.durationMs),
    }
  }
}
