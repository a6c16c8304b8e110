import type { SessionClosedReason } from '../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { DeferredExecution, ExecutionResult } from '../engines/runner.js'
import { GatewayError, toError } from '../errors.js'
import type { Executions } from '../executions/executions.js'
import { type Clock, newId, type Timer } from '../lib/clock.js'
import { KeyedLock } from '../lib/keyed-lock.js'
import type { Logger } from '../lib/logger.js'
import { INTERRUPTED } from './deferred-executions.js'
import type { EngineStarter } from './engine-start.js'
import type { JournaledSession } from './journal.js'
import { type OnParkingError, ParkShelf } from './park-shelf.js'
import type { AnswerBearing } from './permissions.js'
import { catchUp, takeInAnswer, takeInResult } from './record-news.js'
import type { Session } from './session.js'
import type { SessionParking } from './session-world.js'
import type { ParkedSessionRecord, SessionStore } from './store.js'
import { Waker, type WakingHost } from './waking.js'

export interface ParkingOptions {
  store: SessionStore
  /** How long after the last client left a waiting session is parked. */
  parkDelayMs: number
  /** Grace at start for deadlines that lapsed while the process was down. */
  expiredGraceMs: number
  onError: OnParkingError | undefined
}

/** What the lot needs of the registry, which holds the sessions. */
export interface ParkingHost extends WakingHost {
  /** A live session is parked now. */
  onParked(session: Session): void
  /** The record of a parked session has changed. */
  onRecordChanged(record: ParkedSessionRecord): void
  /** @param journaled the session in the journal, when that has the log */
  adopt(record: ParkedSessionRecord, journaled: JournaledSession | undefined): void
  /** Removes what is kept of a session elsewhere. */
  erase(id: string, reason: SessionClosedReason): Promise<void>
  /** Closes and removes a session whose record is gone; its final SessionInfo. */
  remove(session: Session, reason: SessionClosedReason): Promise<SessionInfo>
}

export interface ParkingParts {
  clock: Clock
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  logger: Logger
  starter: EngineStarter
  executions: Executions
  host: ParkingHost
}

/** After a park that could not be saved: before the next try, doubled each time up to the longest. */
const PARK_RETRY_MS = 1_000
const LONGEST_PARK_RETRY_MS = 5 * 60_000
/**
 * A session whose wake a crash cut off has told events that nobody knows any more: its numbering goes on so much later that none of
 * theirs is used again.
 */
const LOST_SEQS = 1_000_000

/**
 * Parks sessions that wait, and wakes them. What is done to one session's record is done one step after the other, under its lock:
 * save, results, answers, wake and removal cannot overtake each other.
 */
export class ParkingLot implements SessionParking {
  readonly #options: ParkingOptions
  readonly #parts: ParkingParts
  readonly #lock = new KeyedLock()
  readonly #shelf: ParkShelf
  readonly #waker: Waker
  readonly #delays = new Map<string, Timer>()
  /** Runs of jobs that wait. */
  readonly #holds = new Map<string, Timer>()
  /** Sessions whose park could not be saved: not to be tried again before `at`. */
  readonly #refused = new Map<string, { at: number; delayMs: number }>()

  constructor(options: ParkingOptions, parts: ParkingParts) {
    const { logger, host } = parts
    this.#options = options
    this.#parts = parts
    const onChanged = (record: ParkedSessionRecord) => host.onRecordChanged(record)
    this.#shelf = new ParkShelf(options.store, { onError: options.onError, logger, onChanged })
    this.#waker = new Waker({ ...parts, lock: this.#lock, shelf: this.#shelf })
  }

  // ── what sessions ask ─────────────────────────────────────────────────────────────────────────────────────────────────────

  register(session: Session, { executionId, expiresAt }: DeferredExecution): boolean {
    return this.#parts.executions.defer(session.id, executionId, expiresAt)
  }

  withdraw(executionId: string): boolean {
    return this.#parts.executions.claim(executionId)
  }

  async settle(executionId: string, result: ExecutionResult): Promise<void> {
    await this.#parts.executions.submit(executionId, result)
  }

  consider(session: Session): void {
    this.#delays.get(session.id)?.cancel()
    this.#delays.delete(session.id)
    if (!session.canPark) return
    if (session.jobId !== undefined) this.#holdInTime(session)
    if (session.clients.count > 0) return
    const delayMs = this.#delayOf(session)
    // a turn later: what the engine still hands over in this one belongs to the park
    if (delayMs <= 0) setImmediate(() => void this.#lock.run(session.id, () => this.#parkWhenDue(session)))
    else {
      const refused = this.#refused.get(session.id)
      const { clock, retryAfter } = this.#parts
      const again = () => {
        if (refused) refused.at = 0
        this.consider(session)
      }
      const timer = refused ? retryAfter(delayMs, again) : clock.after(delayMs, again)
      this.#delays.set(session.id, timer)
    }
  }

  /** Whoever looks at a job that waits neither holds its slot nor lets its clock run. */
  #holdInTime(session: Session): void {
    const { clock } = this.#parts
    this.#holds.get(session.id)?.cancel()
    const since = session.heldFrom
    const isDue = () => session.canPark && session.heldFrom === since
    const hold = () => void this.#lock.run(session.id, () => (isDue() ? this.#hold(session, isDue) : undefined))
    this.#holds.set(session.id, clock.after(since + this.#options.parkDelayMs - clock.now(), hold))
  }

  /** Whoever is told that the job is parked finds it parked after a crash, too. */
  async #hold(session: Session, isDue: () => boolean): Promise<void> {
    const { recorded } = session
    // what arrives from now on goes into the record as well
    session.recorded = true
    try {
      await this.#shelf.add(session.heldRecord())
    } catch (error) {
      session.recorded = recorded
      this.#shelf.report(error, { sessionId: session.id, phase: 'park' })
      this.#holds.set(
        session.id,
        this.#parts.retryAfter(PARK_RETRY_MS, () => this.consider(session)),
      )
      return
    }
    if (isDue()) session.hold()
  }

  async settled(session: Session): Promise<void> {
    if (this.#lock.isHeld(session.id)) await this.#lock.run(session.id, () => {})
  }

  checkpoint(session: Session): void {
    void this.#lock.run(session.id, async () => {
      if (!session.recorded || session.parked || session.frozen) return
      await this.#shelf.delete(session.id).then(
        () => {
          session.recorded = false
        },
        // reported; the next checkpoint tries again
        () => {},
      )
    })
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE, and then nothing was answered */
  async answer(
    { id }: Session,
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing: AnswerBearing = {},
  ): Promise<void> {
    await this.#lock.run(id, () => this.#answerInTurn(id, requestId, answer, bearing))
    await this.#waker.wake(id)
  }

  async #answerInTurn(
    id: string,
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing: AnswerBearing,
  ): Promise<void> {
    const live = this.#live(id)
    const record = !live || live.recorded ? await this.#shelf.get(id) : undefined
    if (live && !record) return live.acceptAnswer(requestId, answer, bearing)
    const request = live
      ? live.answerable(requestId, answer)
      : record?.permissions.find((pending) => pending.id === requestId)
    if (!record || !request) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
    takeInAnswer(record, request, answer, bearing.by)
    await this.#shelf.saveForWake(record, bearing.key)
    live?.resolvePermission(requestId, answer, bearing.by)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE, and then nothing was interrupted */
  async interrupt({ id }: Session): Promise<void> {
    const live = await this.#lock.run(id, async () => {
      const session = this.#live(id)
      if (session) return session
      const record = await this.#shelf.get(id)
      if (record) await this.#interruptInTurn(record)
      return undefined
    })
    if (live) await live.interrupt()
    else await this.#waker.wake(id)
  }

  async #interruptInTurn(record: ParkedSessionRecord): Promise<void> {
    const { executions } = this.#parts
    // one that is being settled right now keeps its own result, which waits for this lock
    const claimed = record.executions.filter(({ executionId }) => executions.claim(executionId))
    for (const { executionId } of claimed) takeInResult(record, executionId, INTERRUPTED)
    record.interrupted = true
    record.hasNews = true
    try {
      await this.#shelf.saveForWake(record)
    } catch (error) {
      for (const { executionId } of claimed) executions.unclaim(executionId)
      throw error
    }
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
  remove(id: string, reason: SessionClosedReason): Promise<SessionInfo> {
    const { host } = this.#parts
    this.#waker.callOff(id)
    return this.#lock.run(id, async () => {
      const resident = host.resident(id)
      const record = await this.#shelf.get(id)
      const session = resident ?? (record && host.restore(record))
      if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
      // durable before it is said, and before anything else can wake it; asked for together, so that one store does both or none
      const [dropped, erased] = await Promise.allSettled([this.#shelf.delete(id), host.erase(id, reason)])
      if (dropped.status === 'rejected') throw dropped.reason
      if (erased.status === 'rejected') {
        // two stores, and only one of them is well: it stays parked, so its record does too
        if (record) await this.#shelf.save(record).catch(() => {})
        throw erased.reason
      }
      session.recorded = false
      this.#forget(id)
      return host.remove(session, reason)
    })
  }

  /** A session has ended: nothing is to be woken from its record. */
  discard(session: Session): void {
    const { id } = session
    this.#waker.callOff(id)
    this.#forget(id)
    if (session.recorded) void this.#lock.run(id, () => this.#shelf.delete(id)).catch(() => {})
  }

  #forget(id: string): void {
    for (const timers of [this.#delays, this.#holds]) {
      timers.get(id)?.cancel()
      timers.delete(id)
    }
    this.#refused.delete(id)
  }

  // ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Hands a result to its session, or keeps it for when it wakes; resolves when that is durable.
   * @returns false when the session has ended, so that nothing waits for it
   * @throws SG_ERR_STORE_UNAVAILABLE; nothing was taken in then
   */
  async deliver(id: string, executionId: string, result: ExecutionResult): Promise<boolean> {
    const live = this.#live(id)
    if (live && !live.recorded && !this.#lock.isHeld(id)) {
      await live.accept({ type: 'result', executionId, result })
      return true
    }
    return this.#lock.run(id, () => this.#deliverInTurn(id, executionId, result))
  }

  async #deliverInTurn(id: string, executionId: string, result: ExecutionResult): Promise<boolean> {
    const live = this.#live(id)
    const record = !live || live.recorded ? await this.#shelf.get(id) : undefined
    if (!record) {
      if (!live?.live) return false
      await live.accept({ type: 'result', executionId, result })
      return true
    }
    takeInResult(record, executionId, result)
    await this.#shelf.saveForWake(record)
    live?.settleExecution(executionId, result)
    return true
  }

  /** Wakes a session that a result was kept for. */
  wake(id: string): Promise<void> {
    return this.#live(id) && !this.#lock.isHeld(id) ? Promise.resolve() : this.#waker.wake(id)
  }

  /** Tries again at once to wake a session that could not be woken. */
  hasten(id: string): Promise<void> {
    return this.#waker.hasten(id)
  }

  // ── parking ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #delayOf(session: Session): number {
    const { leftAt } = session.clients
    const due = leftAt === undefined ? 0 : leftAt + this.#options.parkDelayMs
    return Math.max(due, this.#refused.get(session.id)?.at ?? 0) - this.#parts.clock.now()
  }

  async #parkWhenDue(session: Session): Promise<void> {
    if (session.clients.count === 0 && this.#delayOf(session) <= 0) await this.#park(session)
  }

  async #park(session: Session): Promise<void> {
    if (!session.canPark) return
    const { id } = session
    let record: ParkedSessionRecord
    try {
      record = session.freeze()
    } catch (error) {
      this.#shelf.report(error, { sessionId: id, phase: 'park' })
      return
    }
    // what the engine itself keeps of the session is whole only then
    await session.runnerClosed
    try {
      await this.#shelf.add(record)
    } catch (error) {
      this.#shelf.report(error, { sessionId: id, phase: 'park' })
      const delayMs = Math.min((this.#refused.get(id)?.delayMs ?? PARK_RETRY_MS / 2) * 2, LONGEST_PARK_RETRY_MS)
      this.#refused.set(id, { at: this.#parts.clock.now() + delayMs, delayMs })
      await this.#revive(session, record)
      return
    }
    this.#forget(id)
    session.confirmParked(record)
    this.#parts.host.onParked(session)
  }

  /** Not parked, since nobody would find it after a crash: it goes on with a new engine until the store is well again. */
  async #revive(session: Session, record: ParkedSessionRecord): Promise<void> {
    try {
      await this.#waker.bringBack(session, record)
    } catch (error) {
      session.fail(toError(error).message, 'SG_ERR_ENGINE_START')
    }
  }

  /** Parks what waits, attached clients or not; for the end of the process. */
  async parkAll(sessions: Iterable<Session>): Promise<void> {
    this.#waker.close()
    for (const timer of [...this.#delays.values(), ...this.#holds.values()]) timer.cancel()
    await Promise.all([...sessions].map((session) => this.#lock.run(session.id, () => this.#park(session))))
  }

  // ── the start ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What an earlier process left parked; what cannot be read is reported. */
  records(): Promise<ParkedSessionRecord[]> {
    return this.#shelf.list()
  }

  /**
   * Takes up what an earlier process left parked. Never rejects.
   * @param journaled the session in the journal, when that has the log
   */
  async adopt(record: ParkedSessionRecord, journaled: JournaledSession | undefined): Promise<void> {
    try {
      await this.#adopt(record, journaled)
    } catch (error) {
      this.#shelf.report(error, { sessionId: record.id, phase: 'adopt' })
    }
  }

  async #adopt(record: ParkedSessionRecord, journaled: JournaledSession | undefined): Promise<void> {
    const { clock, executions, host } = this.#parts
    const now = clock.now()
    if (record.hasNews || record.isHeld) {
      if (journaled) catchUp(record, journaled.state)
      else {
        record.info.lastSeq += LOST_SEQS
        record.log.epoch = newId()
      }
      delete record.isHeld
      await this.#options.store.save(record)
    }
    host.adopt(record, journaled)
    for (const { executionId, expiresAt } of record.executions) {
      const lapsed = expiresAt !== undefined && expiresAt < now
      executions.register(record.id, executionId, lapsed ? now + this.#options.expiredGraceMs : expiresAt)
    }
    for (const executionId of record.settled) executions.remember(record.id, executionId)
    if (record.hasNews) void this.#waker.wake(record.id)
  }

  /** Removes the record of a session that ended before it could. Never rejects. */
  async dropRecord(id: string): Promise<void> {
    await this.#shelf.delete(id).catch(() => {})
  }

  /** Reads a parked session into memory, for somebody who wants to look at it. */
  load(id: string): Promise<Session | undefined> {
    return this.#lock.run(id, async () => {
      const resident = this.#parts.host.resident(id)
      if (resident || !this.#parts.host.isParked(id)) return resident
      const record = await this.#shelf.get(id)
      return record && this.#parts.host.restore(record)
    })
  }

  /** Changes the record of a session, if there is one. @throws SG_ERR_STORE_UNAVAILABLE */
  async amend(id: string, change: (record: ParkedSessionRecord) => void): Promise<void> {
    await this.#lock.run(id, async () => {
      const record = await this.#shelf.get(id)
      if (!record) return
      change(record)
      await this.#shelf.save(record)
    })
  }

  /** Whether something is being done to this session. */
  isBusy(id: string): boolean {
    return this.#lock.isHeld(id)
  }

  async close(): Promise<void> {
    await this.#shelf.close()
  }

  #live(id: string): Session | undefined {
    const session = this.#parts.host.resident(id)
    return session?.live ? session : undefined
  }
}
