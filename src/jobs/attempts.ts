import type { JobInfo, JobProgress } from '../../schemas/jobs.js'
import { toError } from '../errors.js'
import { type Clock, newId } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { JobPatch, JobRecord } from './adapter.js'
import { stricter } from './budgets.js'
import { type AttemptOutcome, type JobNotes, retryDelay, type StoredJob } from './job.js'
import type { JobEvents } from './job-events.js'
import type { JobStore } from './job-store.js'
import { JobRun, type RunLimits, type RunOwner } from './run.js'
import type { JobSessions } from './sessions.js'

export interface AttemptsOptions {
  clock: Clock
  logger: Logger
  sessions: JobSessions
  store: JobStore
  events: JobEvents
  limits: RunLimits
  /** @throws GatewayError when the profile is no longer who it was */
  recallProfile(name: string, generation: string | undefined): ResolvedProfile
  /** A slot became free, or a job can be claimed. */
  onSlot(): void
  onAttemptOver(jobId: string, sessionId: string): void
  onTerminal(info: JobInfo): void
}

interface Tracked {
  run: JobRun
  /** Parked, as everybody can see: it takes no slot. */
  parked: boolean
  /** What is written about the run, one after the other; told after it was written. */
  writing: Promise<void>
  /** Resolves when the end of the attempt is written. */
  settled: Promise<void>
  settle(): void
}

/** The runs of this process: what happens to them is written down, then told. */
export class Attempts implements RunOwner {
  readonly clock: Clock
  readonly sessions: JobSessions
  draining = false
  readonly #options: AttemptsOptions
  readonly #byJob = new Map<string, Tracked>()
  readonly #bySession = new Map<string, Tracked>()
  /** Ended runs whose engine is not gone yet: they still take their slots. */
  #closing = 0
  #parked = 0
  readonly #unsubscribe: (() => void)[]

  constructor(options: AttemptsOptions) {
    this.#options = options
    this.clock = options.clock
    this.sessions = options.sessions
    this.#unsubscribe = [
      this.sessions.on('session_event', ({ sessionId, event, session }) =>
        this.#bySession.get(sessionId)?.run.onEvent(event, session),
      ),
      this.sessions.on('session_removed', ({ sessionId }) => this.#bySession.get(sessionId)?.run.cancel()),
    ]
  }

  /** How many slots are taken. */
  get slots(): number {
    return this.#byJob.size - this.#parked + this.#closing
  }

  /** The live state of a job that this process runs. */
  live(jobId: string): StoredJob | undefined {
    return this.#byJob.get(jobId)?.run.live
  }

  has(jobId: string): boolean {
    return this.#byJob.has(jobId)
  }

  /** Resolves when the attempt that a job is in, if any, was written and told to its end. */
  async over(jobId: string): Promise<void> {
    await this.#byJob.get(jobId)?.settled
  }

  /** Begins an attempt with a job that was just claimed. */
  start(record: JobRecord): void {
    const run = new JobRun(this, record, this.#limitsOf(record))
    const tracked = this.#track(run)
    this.#write(tracked, async () => {
      if (run.ended) return
      const cleared = { sdkSessionId: undefined, nextRunAt: undefined, result: undefined, error: undefined }
      const started = { startedAt: this.clock.now(), sessionId: run.sessionId }
      if (!(await this.#change(run, { ...cleared, ...started }))) return
      if (run.ended) return
      this.#options.events.emit('job_started', run.record)
      const { profile, notes } = run.record.info
      run.begin(() => this.#options.recallProfile(profile, notes?.generation))
    })
  }

  /** Goes on with a job that was parked when this process started. */
  adopt(record: JobRecord, graceMs: number): void {
    const { sessionId } = record.info
    const session = sessionId === undefined ? undefined : this.sessions.get(sessionId)
    const run = new JobRun(this, record, this.#limitsOf(record), { sessionId: sessionId ?? newId() })
    const tracked = this.#track(run)
    if (!session || session.status === 'failed' || session.status === 'closed')
      run.giveUp({ status: 'failed', error: 'The session of the parked job is gone.', final: true })
    else {
      this.#setParked(tracked, true)
      run.adopt(session, graceMs)
    }
  }

  /**
   * Cancels a run, whatever it is in the middle of.
   * @returns the job once the end of its attempt is written; undefined when it is not running here
   */
  async cancel(jobId: string): Promise<StoredJob | undefined> {
    const tracked = this.#byJob.get(jobId)
    if (!tracked) return undefined
    tracked.run.cancel()
    await tracked.settled
    return tracked.run.record.info
  }

  /** Counts a run that a crash interrupted as a failed attempt. */
  abandon(record: JobRecord): void {
    const run = new JobRun(this, record, this.#limitsOf(record), { sessionId: record.info.sessionId ?? newId() })
    this.#track(run)
    run.giveUp({ status: 'failed', error: 'The gateway stopped during the run.' })
  }

  /** Resolves when the end of every run is written, or that it is parked. */
  async settled(): Promise<void> {
    const runs = [...this.#byJob.values()]
    await Promise.all(runs.map(({ run, writing, settled }) => (run.parked ? writing : settled)))
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }

  // ── what runs go through ──────────────────────────────────────────────────────────────────────────────────────────────────

  onProgress(run: JobRun, progress: JobProgress): void {
    const { live } = run
    this.#writeFor(run, () => this.#options.events.emit('job_progress', run.record, { job: live, progress }))
  }

  onParked(run: JobRun, executionId: string | undefined): void {
    const { notes, live } = run
    this.#writeFor(run, async (tracked) => {
      const patch: JobPatch = {
        status: 'parked',
        parkedAt: this.clock.now(),
        parkedExecutionId: executionId,
        sdkSessionId: live.sdkSessionId,
        notes: { ...run.record.info.notes, attempt: notes },
      }
      if (!(await this.#change(run, patch))) return
      this.#options.events.emit('job_parked', run.record, { job: run.live, executionId })
      // it may have gone on, or ended, while this was written
      if (run.parked) this.#setParked(tracked, true)
    })
  }

  onResumed(run: JobRun): void {
    const { notes } = run
    const tracked = this.#byJob.get(run.record.info.id)
    if (tracked?.run === run) this.#setParked(tracked, false)
    this.#writeFor(run, async () => {
      const executionId = run.record.info.parkedExecutionId
      const cleared = { parkedAt: undefined, parkedExecutionId: undefined }
      const patch = { ...cleared, status: 'running', notes: { ...run.record.info.notes, attempt: notes } } as const
      if (await this.#change(run, patch))
        this.#options.events.emit('job_resumed', run.record, { job: run.live, executionId })
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
    this.#setParked(tracked, false)
    this.#bySession.delete(run.sessionId)
    this.#write(tracked, async () => {
      const { attempt, maxAttempts } = run.record.info
      const retries = outcome.status === 'failed' && !outcome.final && attempt < maxAttempts
      // the next attempt works in the same directory: not before the engine of this one is gone
      if (retries) await run.closed
      await this.#settle(tracked, retries && !run.cancelRequested ? 'retry' : 'end', outcome)
    })
  }

  async #settle({ run, settle }: Tracked, next: 'retry' | 'end', outcome: AttemptOutcome): Promise<void> {
    const { store, events, onSlot, onAttemptOver, onTerminal } = this.#options
    const { record, live } = run
    const over: JobPatch = {
      usage: live.usage,
      sdkSessionId: live.sdkSessionId,
      parkedAt: undefined,
      parkedExecutionId: undefined,
      notes: withoutAttempt(record.info.notes),
    }
    const now = this.clock.now()
    const patch = next === 'retry' ? this.#retryPatch(run, outcome, now) : endPatch(run, outcome, now)
    const written = await store.settle(record, { ...over, ...patch }, run.tokens)
    if (written) run.record = written
    this.#byJob.delete(record.info.id)
    this.#holdSlot(run)
    onAttemptOver(record.info.id, run.sessionId)
    settle()
    if (!written) return
    events.emit(next === 'retry' ? 'job_retrying' : 'job_completed', written)
    if (next === 'end') onTerminal(written.info)
    onSlot()
  }

  #retryPatch({ record: { info, request } }: JobRun, { error }: AttemptOutcome, now: number): JobPatch {
    const nextRunAt = now + retryDelay(request, info.attempt)
    return { status: 'queued', attempt: info.attempt + 1, nextRunAt, error }
  }

  /** The job is over, its engine may not be. */
  #holdSlot(run: JobRun): void {
    this.#closing++
    void run.closed.then(() => {
      this.#closing--
      this.#options.onSlot()
    })
  }

  // ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #track(run: JobRun): Tracked {
    let settle = () => {}
    const settled = new Promise<void>((resolve) => {
      settle = resolve
    })
    const tracked: Tracked = { run, parked: false, writing: Promise.resolve(), settled, settle }
    this.#byJob.set(run.record.info.id, tracked)
    this.#bySession.set(run.sessionId, tracked)
    return tracked
  }

  #writeFor(run: JobRun, work: (tracked: Tracked) => void | Promise<void>): void {
    const tracked = this.#byJob.get(run.record.info.id)
    if (tracked?.run === run) this.#write(tracked, () => work(tracked))
  }

  #setParked(tracked: Tracked, parked: boolean): void {
    if (tracked.parked === parked) return
    tracked.parked = parked
    this.#parked += parked ? 1 : -1
    if (parked) this.#options.onSlot()
  }

  #write(tracked: Tracked, work: () => void | Promise<void>): void {
    tracked.writing = tracked.writing.then(work).catch((error) => {
      const { id } = tracked.run.record.info
      this.#options.logger.error({ err: toError(error), jobId: id }, 'a change of a job could not be written')
    })
  }

  /** @returns false when somebody else changed the job: the run is then over, and nothing more is told about it */
  async #change(run: JobRun, patch: JobPatch): Promise<boolean> {
    const record = await this.#options.store.change(run.record, patch)
    if (record) run.record = record
    else run.cancel()
    return record !== null
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

function withoutAttempt(notes: JobNotes | undefined): JobNotes | undefined {
  const { attempt: _attempt, ...kept } = notes ?? {}
  return Object.keys(kept).length > 0 ? kept : undefined
}

function endPatch({ cancelRequested }: JobRun, outcome: AttemptOutcome, now: number): JobPatch {
  const canceled = cancelRequested && outcome.status === 'failed'
  return {
    status: canceled ? 'canceled' : outcome.status,
    finishedAt: now,
    nextRunAt: undefined,
    notes: undefined,
    result: outcome.result,
    error: outcome.status === 'failed' ? outcome.error : undefined,
  }
}
