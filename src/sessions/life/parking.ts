import type { SessionClosedReason } from '../../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import type { DeferredExecution, ExecutionResult, RunnerSnapshot } from '../../engines/runner.js'
import { GatewayError, toError } from '../../errors.js'
import type { Executions } from '../../executions/executions.js'
import type { KeptKey } from '../../idempotency/store.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Clock, Timer } from '../../lib/clock.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import { INTERRUPTED } from '../asks/deferred-executions.js'
import type { AnswerBearing } from '../asks/permissions.js'
import type { JournaledSession } from '../kept/journal.js'
import type { Keeping, OnParkingError } from '../kept/keeping.js'
import { type Asked, isForEngine, newsOf } from '../kept/news.js'
import type { SessionStore } from '../kept/store.js'
import type { Session } from '../session.js'
import type { SessionParking } from '../session-world.js'
import type { EngineStarter } from './engine-start.js'
import { Waker, type WakingHost } from './waking.js'

export interface ParkingOptions {
  store: SessionStore | undefined
  /** How long after the last client left a waiting session is parked. */
  parkDelayMs: number
  /** Grace at start for deadlines that lapsed while the process was down. */
  expiredGraceMs: number
  onError: OnParkingError | undefined
}

/** What the lot needs of the registry, which holds the sessions. */
export interface ParkingHost extends WakingHost {
  /** Something was kept for a session without an engine. */
  onNews(id: string, news: readonly Asked[]): void
  /** A live session is parked now. */
  onParked(session: Session): void
  /** Closes and removes a session; its final SessionInfo. */
  remove(session: Session, reason: SessionClosedReason): Promise<SessionInfo>
}

export interface ParkingParts {
  clock: Clock
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  keeping: Keeping
  starter: EngineStarter
  executions: Executions
  host: ParkingHost
}

/** After a park that could not be saved: before the next try, doubled each time up to the longest. */
const RETRY = { firstMs: 1_000, longestMs: 5 * 60_000 } satisfies Backoff

/**
 * Parks sessions that wait, and wakes them. What is done to one session without an engine is done one step after the other, under its
 * lock: park, results, answers, wake and removal cannot overtake each other.
 */
export class ParkingLot implements SessionParking {
  readonly #options: ParkingOptions
  readonly #parts: ParkingParts
  readonly #lock = new KeyedLock()
  readonly #waker: Waker
  readonly #delays = new Map<string, Timer>()
  /** Runs of jobs that wait. */
  readonly #holds = new Map<string, Timer>()
  /** Sessions whose park could not be saved: not to be tried again before `at`. */
  readonly #refused = new Map<string, { at: number; tries: number }>()

  constructor(options: ParkingOptions, parts: ParkingParts) {
    this.#options = options
    this.#parts = parts
    this.#waker = new Waker({ ...parts, lock: this.#lock })
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
    const { keeping, retryAfter, clock } = this.#parts
    try {
      const write = session.hold(clock.now())
      await (write ? keeping.write(write) : session.durable())
    } catch (error) {
      keeping.report(error, { sessionId: session.id, phase: 'park' })
      this.#holds.set(
        session.id,
        retryAfter(RETRY.firstMs, () => this.consider(session)),
      )
      return
    }
    if (isDue()) session.tellHeld()
  }

  async settled(session: Session): Promise<void> {
    if (this.#lock.isHeld(session.id)) await this.#lock.run(session.id, () => {})
  }

  checkpoint(session: Session): void {
    void this.#lock.run(session.id, async () => {
      if (session.live) await this.#parts.keeping.erase(session.id, session).catch(() => {})
    })
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE, and then nothing was answered */
  async answer(
    { id }: Session,
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing: AnswerBearing = {},
  ): Promise<void> {
    const { by, key } = bearing
    await this.#lock.run(id, async () => {
      const session = await this.#parts.host.load(id)
      if (!session?.pendingPermissions.some((request) => request.id === requestId))
        throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
      if (session.live) await session.answerPermission(requestId, answer, bearing)
      else await this.#deposit(id, [{ type: 'answer', requestId, answer, ...(by && { by }) }], key && [key])
    })
    await this.#waker.wake(id)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE, and then nothing was interrupted */
  async interrupt({ id }: Session): Promise<void> {
    const live = await this.#lock.run(id, async () => {
      const session = await this.#parts.host.load(id)
      if (session?.live) return session
      if (session) await this.#interruptInTurn(session)
      return undefined
    })
    if (live) await live.interrupt()
    else await this.#waker.wake(id)
  }

  async #interruptInTurn(session: Session): Promise<void> {
    const { executions } = this.#parts
    // one that is being settled right now keeps its own result, which waits for this lock
    const claimed = session.executions.list().filter(({ executionId }) => executions.claim(executionId))
    const results = claimed.map(({ executionId }) => ({ type: 'result' as const, executionId, result: INTERRUPTED }))
    try {
      await this.#deposit(session.id, [...results, { type: 'interrupt' }])
    } catch (error) {
      for (const { executionId } of claimed) executions.unclaim(executionId)
      throw error
    }
  }

  /** Keeps what came in for a session without an engine. @throws SG_ERR_STORE_UNAVAILABLE · SG_ERR_SESSION_NOT_FOUND */
  async #deposit(id: string, asked: readonly Asked[], keys?: readonly KeptKey[]): Promise<void> {
    const { keeping, host } = this.#parts
    const news = asked.map(newsOf)
    if (!(await keeping.deposit(id, news, keys))) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    host.resident(id)?.expect(news)
    host.onNews(id, news)
    this.#waker.expect(id)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
  remove(id: string, reason: SessionClosedReason): Promise<SessionInfo> {
    const { host } = this.#parts
    const wasExpected = this.#waker.callOff(id)
    const removal = this.#lock.run(id, async () => {
      const session = await host.load(id)
      if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
      const removed = await host.remove(session, reason)
      this.#forget(id)
      return removed
    })
    if (wasExpected)
      removal.catch(() => {
        this.#waker.expect(id)
        void this.#waker.wake(id)
      })
    return removal
  }

  /** A session has ended: nothing is to be woken of it. */
  discard(session: Session): void {
    const { id } = session
    this.#waker.callOff(id)
    this.#forget(id)
    if (session.midTurn) void this.#lock.run(id, () => this.#parts.keeping.erase(id, session)).catch(() => {})
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
    const asked: Asked = { type: 'result', executionId, result }
    const live = this.#live(id)
    if (live && !this.#lock.isHeld(id)) {
      await live.accept(asked)
      return true
    }
    return this.#lock.run(id, async () => {
      const session = this.#live(id)
      if (session) await session.accept(asked)
      else if (this.#parts.host.isParked(id)) await this.#deposit(id, [asked])
      else return false
      return true
    })
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
    const { keeping, clock, host } = this.#parts
    const since = clock.now()
    try {
      const snapshot = session.freeze()
      // what the engine itself keeps of the session is whole only then
      await session.engineGone
      if (!keeping.hasAll)
        try {
          await keeping.park(session.asleep(snapshot, since), session)
        } catch (error) {
          await this.#onRefused(session, snapshot, error)
          return
        }
      if (session.ended) return
      session.park(snapshot, since)
      this.#forget(id)
      // one that cannot be written down yet is kept in memory until it can be
      await session.durable()
    } catch (error) {
      keeping.report(error, { sessionId: id, phase: 'park' })
    }
    if (session.parked) host.onParked(session)
  }

  /** Not parked, since nobody would find it after a crash: it goes on with a new engine until the store is well again. */
  async #onRefused(session: Session, snapshot: RunnerSnapshot, refusal: unknown): Promise<void> {
    const { keeping, clock } = this.#parts
    const { id } = session
    keeping.report(refusal, { sessionId: id, phase: 'park' })
    const tries = (this.#refused.get(id)?.tries ?? 0) + 1
    this.#refused.set(id, { at: clock.now() + delayAfter(tries, RETRY), tries })
    try {
      await this.#waker.bringBack(session, snapshot)
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

  /** Takes up a session that an earlier process left in the middle of a turn. */
  adopt({ id, state, news = [] }: JournaledSession): void {
    const { clock, executions } = this.#parts
    const { midTurn, settled = [], executions: pending = [] } = state
    const now = clock.now()
    const came = news.flatMap((one) => (one.type === 'result' ? one.executionId : []))
    for (const executionId of [...settled, ...came, ...(midTurn?.results.map((one) => one.executionId) ?? [])])
      executions.remember(id, executionId)
    for (const { executionId, expiresAt } of pending) {
      if (!midTurn?.waits.includes(executionId)) continue
      const lapsed = expiresAt !== undefined && expiresAt < now
      executions.register(id, executionId, lapsed ? now + this.#options.expiredGraceMs : expiresAt)
    }
    if (!midTurn?.due && !news.some((one) => isForEngine(one) || one.type === 'close')) return
    this.#waker.expect(id)
    void this.#waker.wake(id)
  }

  /** Runs `work` when nothing else is being done to a session without an engine. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#lock.run(id, work)
  }

  /** Whether something is being done to this session. */
  isBusy(id: string): boolean {
    return this.#lock.isHeld(id)
  }

  #live(id: string): Session | undefined {
    const session = this.#parts.host.resident(id)
    return session?.live ? session : undefined
  }
}
