import type { SessionEvent, SessionEventOf } from '../../schemas/events.js'
import type { JobProgress, JobUsage } from '../../schemas/jobs.js'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { GatewayError, hasCode } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { Clock, Timer } from '../lib/clock.js'
import { newId } from '../lib/new-id.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import { comesAgain } from '../sessions/life/refusals.js'
import type { Place } from '../sessions/places.js'
import type { SessionEventTold } from '../sessions/registry-options.js'
import type { JobPatch, JobRecord } from './adapter.js'
import { AttemptMeter } from './attempt-meter.js'
import { AttemptTime } from './attempt-time.js'
import type { AttemptNotes, AttemptOutcome, StoredJob } from './job.js'
import { outcomeOf, refused } from './outcome.js'
import { patched } from './patch.js'
import { progressOf } from './progress.js'
import { type JobSessions, unlessGone } from './sessions.js'

/** `undefined`: no limit. */
export interface RunLimits {
  tokens: number | undefined
  durationMs: number | undefined
  parkedMs: number | undefined
  killGraceMs: number
}

/** What the queue does about what a run goes through; each is called once per change, in order. */
export interface RunOwner {
  readonly clock: Clock
  readonly sessions: JobSessions
  readonly draining: boolean
  onProgress(run: JobRun, progress: JobProgress): void
  onParked(run: JobRun, executionId: string | undefined): void
  onResumed(run: JobRun): void
  onEnded(run: JobRun, outcome: AttemptOutcome): void
  /** An engine or a host's code failed in a way that is not for callers' eyes. */
  onFault(run: JobRun, error: unknown): void
}

/** After a parked session could not be closed: before the next try. */
const CLOSE_RETRY: Backoff = { firstMs: 1_000, longestMs: 30_000 }

/** In one of these no session goes on. */
const AT_REST: ReadonlySet<SessionStatus> = new Set(['parked', 'failed', 'closed'])

/**
 * One attempt of a job: follows its session from outside, by its events, and says once how it ended.
 *
 *   claimed ── begin ──▶ running ◀── status parked / live again ──▶ parked
 *      └─────────────────────┴──── first turn completed, session ended, limit, cancel ──┴──▶ ended
 */
export class JobRun {
  readonly sessionId: string
  readonly limits: RunLimits
  /** As last written; see `live`. */
  record: JobRecord
  /** Resolves when the engine of an ended run is gone or was given up on. */
  closed: Promise<void> = Promise.resolve()
  /** Whether the run ended parked: `closed` is when what its session could be woken from is gone. */
  wasParked = false
  readonly #owner: RunOwner
  /** Cancels that came while the end of the attempt was being written. */
  readonly #cancels: (() => boolean)[] = []
  readonly #meter: AttemptMeter
  readonly #time: AttemptTime
  #state: 'claimed' | 'running' | 'parked' | 'ended' = 'claimed'
  #lastSeq: number
  #sdkSessionId: string | undefined
  readonly #place: Place | undefined
  #isBorn: boolean
  /** Whether its session was created: one that is refused leaves none. */
  #isCreated: boolean
  /** Whether the run is parked while its session has its engine. */
  #isHeld = false
  /** Whether its session has ended. */
  #isClosed = false
  /** What the last call, or turn, that was counted came with; `onEvent` may have seen some of it by now. */
  #counted: readonly SessionEventTold[] = []
  #killing: { error: string; grace: Timer } | undefined

  /** @param from the place of the session that it begins, or the session that it goes on with */
  constructor(owner: RunOwner, record: JobRecord, limits: RunLimits, from: { place?: Place; sessionId?: string }) {
    const attempt = record.info.notes?.attempt
    this.#owner = owner
    this.record = record
    this.limits = limits
    this.sessionId = from.sessionId ?? newId()
    this.#place = from.place
    this.#isBorn = from.place === undefined
    this.#isCreated = this.#isBorn
    this.#meter = new AttemptMeter(attempt)
    this.#time = new AttemptTime(owner.clock, attempt, {
      ...limits,
      onRunTooLong: (error) => this.#kill(error),
      onParkedTooLong: (error) => this.#end({ status: 'failed', error, final: true }),
    })
    this.#lastSeq = attempt?.lastSeq ?? 0
  }

  get ended(): boolean {
    return this.#state === 'ended'
  }

  /** Whether no further attempt is wanted. */
  get cancelRequested(): boolean {
    return this.#cancels.some((isRefused) => !isRefused())
  }

  /** A parked run takes no slot. */
  get parked(): boolean {
    return this.#state === 'parked'
  }

  /** Whether its session is there, to be seen and ended. */
  get isBorn(): boolean {
    this.#isBorn ||= this.#owner.sessions.here(this.sessionId) !== undefined
    return this.#isBorn
  }

  /** Whether it ended while its session was being created, which may leave none. */
  get endedEarly(): boolean {
    return this.ended && !this.#isCreated
  }

  /** Whether there is no session of it, nor was one that anybody could have used. */
  get isUnborn(): boolean {
    return !this.#isCreated && this.#owner.sessions.here(this.sessionId) === undefined
  }

  /** The job as it is at this moment, what is not written yet included. */
  get live(): StoredJob {
    return this.shownWith(this.measured)
  }

  /** What the attempt has come to at this moment. */
  get measured(): Pick<JobPatch, 'usage' | 'sdkSessionId'> {
    const { sdkSessionId } = this
    const usage = this.#meter.addedTo(this.record.info.usage)
    return sdkSessionId === undefined ? { usage } : { usage, sdkSessionId }
  }

  /** The job as it is written by now, with what was measured when something happened that is told only now. */
  shownWith(measured: Pick<JobPatch, 'usage' | 'sdkSessionId'>): StoredJob {
    return patched(this.record.info, measured)
  }

  /** Of the job, if this attempt ends now. */
  get usage(): JobUsage {
    return this.#spent.addedTo(this.record.info.usage)
  }

  get sdkSessionId(): string | undefined {
    return this.#sdkSessionId
  }

  /** Of this attempt, if it ends now. */
  get tokens(): number {
    return this.#spent.tokens
  }

  /** What was used is used, however long the storage takes to write it. */
  get #spent(): AttemptMeter {
    return this.#meter.after(this.#unseen)
  }

  get notes(): AttemptNotes {
    const { usage } = this.#meter
    const { activeMs, parkedMs } = this.#time
    return { usage, activeMs, parkedMs, lastSeq: this.#lastSeq }
  }

  /** Calls the creation of its session off. @throws once the run has ended */
  throwIfAborted(): void {
    if (this.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
  }

  /** Starts the session. @param told with its first write */
  begin(profile: () => ResolvedProfile | Promise<ResolvedProfile>, told?: PlannedNotification): void {
    if (this.#state !== 'claimed') return
    this.#state = 'running'
    this.#time.enter('running')
    const { request, info } = this.record
    const createdBy = info.notes?.submittedBy
    const options = { id: this.sessionId, jobId: info.id, signal: this, place: this.#place, createdBy, told }
    const create = (resolved: ResolvedProfile) =>
      this.#owner.sessions.create(
        { ...request.session, profile: resolved.info.name },
        { ...options, profile: resolved },
      )
    try {
      const resolved = profile()
      const created = resolved instanceof Promise ? resolved.then(create) : create(resolved)
      created.then(
        () => {
          this.#isCreated = true
        },
        (error) => this.#failed(error),
      )
    } catch (error) {
      this.#failed(error)
    }
  }

  /**
   * Goes on with the run of an earlier process.
   * @param session as it is now
   * @param graceMs that long a limit that is over by now is not held against it
   */
  adopt(session: SessionInfo, graceMs: number): void {
    const { status, parkedAt } = this.record.info
    this.#state = status === 'parked' ? 'parked' : 'running'
    const now = this.#owner.clock.now()
    this.#sdkSessionId = session.sdkSessionId
    this.#meter.readTotals(session)
    // what came before this process is known by the wall clock alone
    this.#time.goOn(this.#state, { parkedMs: status === 'parked' ? Math.max(0, now - (parkedAt ?? now)) : 0, graceMs })
    if (session.status === 'parked') this.#park(session.parked?.executions[0]?.executionId)
    else this.#resume()
  }

  /** Counts the run of an earlier process as failed. @param session what is left of it, whose usage counts */
  abandon(session: SessionInfo | undefined, outcome: AttemptOutcome): void {
    if (session) {
      this.#sdkSessionId = session.sdkSessionId
      this.#meter.readSession(session)
    }
    this.#end(outcome)
  }

  /** @param isRefused whether whoever asked for it was refused meanwhile */
  cancel(isRefused = () => false): void {
    if (this.ended) this.#cancels.push(isRefused)
    else this.#end({ status: 'canceled' })
  }

  /** Leaves the run to the next process: no limit is held against it here any more. */
  leave(): void {
    this.#time.stop()
    this.#killing?.grace.cancel()
  }

  /** Takes in what its session has told by now to nobody who followed it. */
  catchUp(told: readonly SessionEventTold[]): void {
    // of one that was removed in the middle of its turn it is told first that the restart has cut that off
    const isRemoved = told.some(isRemoval) && !told.some(isSuccess)
    for (const one of told) if (!isRemoved || one.event.type !== 'turn_completed') this.onEvent(one)
  }

  onEvent({ event, session, held }: SessionEventTold): void {
    if (this.ended || event.seq <= this.#lastSeq) return
    this.#lastSeq = event.seq
    // a parked run is kept for long, and holds nothing of what was said
    if ((this.#counted.at(-1)?.event.seq ?? 0) <= event.seq) this.#counted = []
    // one that has ended leaves the memory before its job is over
    this.#isBorn = true
    this.#sdkSessionId = session.sdkSessionId
    this.#meter.onEvent(event, session)
    if (!held && !AT_REST.has(session.status)) this.#resume()
    switch (event.type) {
      case 'status_changed':
        if (event.status === 'parked') this.#park(session.parked?.executions[0]?.executionId, held)
        return
      case 'turn_completed':
        this.#resume()
        this.#end(outcomeOf(event, this.#killing?.error, this.#overTokens ? this.#tooManyTokens : undefined))
        return
      case 'session_error':
        this.#end(this.#killing ? this.#killed() : refused(event.message, event.code))
        return
      case 'session_closed':
        this.#onClosed(event)
        return
      default:
        this.#progress(event)
    }
  }

  /**
   * Ends with its turn before that is durable, when nothing is to be told about the job before its end; with its session when that is
   * removed.
   * @param untold what `onEvent` would be told once it is
   * @returns whether it has
   */
  endAhead(untold: readonly SessionEventTold[]): boolean {
    const isRemoved = untold.at(-1)?.event.type === 'session_closed'
    if (!this.ended) this.#counted = untold
    if (!isRemoved && (this.#state !== 'running' || this.#killing || untold.some(isTold))) return false
    for (const told of untold) this.onEvent(told)
    return this.ended
  }

  /** Interrupts a turn that has used too much as soon as that is counted. @param untold what `onEvent` will be told once it is durable */
  onCallCounted(untold: readonly SessionEventTold[]): void {
    if (this.ended) return
    this.#counted = untold
    const { tokens } = this.limits
    if (tokens !== undefined && this.tokens > tokens) this.#kill(this.#tooManyTokens)
  }

  /** What was counted and is not durable yet: what `onEvent` has seen by now, or passes over, counts already. */
  get #unseen(): readonly SessionEventTold[] {
    return this.#counted.filter(({ event }) => event.seq > this.#lastSeq)
  }

  /** Its session waits, and keeps its engine while somebody looks at it. */
  onHeld(executionId: string | undefined): void {
    if (!this.ended) this.#park(executionId, true)
  }

  #progress(event: SessionEvent): void {
    const progress = progressOf(event)
    if (progress) this.#owner.onProgress(this, progress)
    if (this.#overTokens) this.#kill(this.#tooManyTokens)
  }

  get #tooManyTokens(): string {
    return `The run used more than ${this.limits.tokens} tokens.`
  }

  get #overTokens(): boolean {
    return this.limits.tokens !== undefined && this.#meter.tokens > this.limits.tokens
  }

  /** @param executionId what it waits for; a session that waits for an approval alone waits for no execution */
  #park(executionId: string | undefined, isHeld = false): void {
    this.#isHeld = isHeld
    if (this.#state !== 'running') return
    if (this.#killing) {
      this.#end(this.#killed())
      return
    }
    this.#state = 'parked'
    this.#time.enter('parked')
    this.#owner.onParked(this, executionId)
  }

  #resume(): void {
    if (this.#state !== 'parked') return
    this.#state = 'running'
    this.#time.enter('running')
    this.#owner.onResumed(this)
  }

  /** Interrupts the turn; a run that does not end by itself then is ended. */
  #kill(error: string): void {
    if (this.#killing || this.ended) return
    const grace = this.#owner.clock.after(this.limits.killGraceMs, () => this.#end(this.#killed()))
    this.#killing = { error, grace }
    this.#owner.sessions.endTurn(this.sessionId, error).catch((refusal) => {
      // nothing to interrupt: the session is not even there
      if (hasCode(refusal, 'SG_ERR_SESSION_NOT_FOUND')) this.#end(this.#killed())
    })
  }

  #killed(): AttemptOutcome {
    return { status: 'failed', error: this.#killing!.error }
  }

  #onClosed({ reason }: SessionEventOf<'session_closed'>): void {
    this.#isClosed = true
    if (this.#killing) this.#end(this.#killed())
    else if (reason === 'error') this.#end({ status: 'failed', error: 'The session failed.' })
    else if (!this.#owner.draining || reason === 'client') this.#end({ status: 'canceled' })
    else if (!this.parked) this.#end({ status: 'failed', error: 'The gateway shut down during the run.' })
  }

  #failed(error: unknown): void {
    if (this.ended) return
    // told before its engine was given anything
    if (error instanceof GatewayError && comesAgain(error.code)) {
      this.#end({ status: 'failed', error: error.message, unbegun: true })
      return
    }
    const told = error instanceof GatewayError
    if (!told || error.cause !== undefined) this.#owner.onFault(this, error)
    this.#end(told ? refused(error.message, error.code) : refused('The session could not be started.'))
  }

  #end(outcome: AttemptOutcome): void {
    if (this.ended) return
    const { sessions } = this.#owner
    this.wasParked = this.parked && !this.#isHeld
    this.#place?.release()
    this.#time.stop()
    this.#state = 'ended'
    this.#killing?.grace.cancel()
    // closing also discards what a parked session could be woken from; ending leaves the session to be looked at
    const ends = this.wasParked ? () => this.#closeParked() : () => sessions.end(this.sessionId)
    const ending = this.#isClosed && !sessions.here(this.sessionId) ? Promise.resolve() : ends()
    this.closed = ending.then(
      () => {},
      () => {},
    )
    this.#owner.onEnded(this, outcome)
  }

  /** Until it is closed a result would wake it, for a job that is over: what the storage refuses is tried again, or done by the next process. */
  async #closeParked(tries = 1): Promise<void> {
    const { sessions, clock } = this.#owner
    try {
      await sessions.close(this.sessionId).catch(unlessGone)
    } catch {
      if (!this.#owner.draining)
        clock.after(delayAfter(tries, CLOSE_RETRY), () => void (this.#owner.draining || this.#closeParked(tries + 1)))
    }
  }
}

const isRemoval = ({ event }: SessionEventTold): boolean => event.type === 'session_closed' && event.reason === 'client'

const isSuccess = ({ event }: SessionEventTold): boolean =>
  event.type === 'turn_completed' && event.subtype === 'success' && !event.isError

const isTold = ({ event }: SessionEventTold): boolean =>
  progressOf(event) !== undefined || (event.type === 'status_changed' && event.status === 'parked')
