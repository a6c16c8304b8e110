import type { SessionClosedReason } from '../../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import type { ExecutionResult } from '../../engines/runner.js'
import { GatewayError, hasCode } from '../../errors.js'
import type { Executions, ResultTaker } from '../../executions/executions.js'
import type { KeptKey } from '../../idempotency/store.js'
import type { Patience } from '../../lib/patience.js'
import { INTERRUPTED } from '../asks/deferred-executions.js'
import { type AnswerBearing, answerAsked, assertAnswers } from '../asks/permissions.js'
import type { JournaledSession } from '../kept/journal.js'
import { type Asked, isForEngine, newsOf } from '../kept/news.js'
import type { Session } from '../session.js'
import type { SessionSleep } from '../session-world.js'
import type { Telling } from '../telling.js'
import { FallingAsleep, type SleepTimes } from './falling-asleep.js'
import { Starts } from './starts.js'
import { type SleepParts, Waking } from './waking.js'

export interface SleepOptions extends SleepParts, SleepTimes {
  executions: Executions
  telling: Telling
  /** Grace at start for deadlines that lapsed while the process was down. */
  expiredGraceMs: number
  /** Closes and removes a session; its final SessionInfo. */
  remove(session: Session, reason: SessionClosedReason): Promise<SessionInfo>
}

/**
 * What is done to sessions that have no engine, or are about to have none: they fall asleep, are told something, wake, are removed. It
 * is done one step after the other for each session, in its mailbox, so that none of them can overtake another.
 */
export class Sleep implements SessionSleep, ResultTaker {
  readonly #parts: SleepOptions
  readonly #waking: Waking
  readonly #starts: Starts
  readonly #fallingAsleep: FallingAsleep

  constructor(parts: SleepOptions) {
    this.#parts = parts
    this.#waking = new Waking(parts)
    this.#starts = new Starts(parts, this.#waking)
    this.#fallingAsleep = new FallingAsleep(parts, this.#waking)
  }

  /** Whether a park could not be written down that is tried again. */
  get isRefused(): boolean {
    return this.#fallingAsleep.isRefused
  }

  consider(session: Session): void {
    this.#fallingAsleep.consider(session)
  }

  onSpent(session: Session): void {
    this.#fallingAsleep.onSpent(session)
  }

  rouse(session: Session): Promise<void> {
    return this.#waking.rouse(session)
  }

  /** Gives a session an engine again for the messages that wait in it. */
  goOn(session: Session): Promise<void> {
    return this.#waking.goOn(session)
  }

  async unfrozen(session: Session): Promise<void> {
    if (session.frozen) await this.#parts.mailbox.run(session.id, () => {})
  }

  checkpoint(session: Session): void {
    void this.#parts.mailbox.run(session.id, async () => {
      if (session.live) await this.#parts.keeping.erase(session.id, session).catch(() => {})
    })
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_VALIDATION · SG_ERR_STORE_UNAVAILABLE, and then nothing was answered */
  async answer(
    { id }: Session,
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing: AnswerBearing = {},
  ): Promise<void> {
    const { key, patience } = bearing
    await this.#waking.inTurn(id, async () => {
      const session = await this.#parts.load(id, undefined, patience)
      if (!session) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
      if (session.live) return session.answerLive(requestId, answer, bearing)
      assertAnswers(session.answerable(requestId, answer), answer)
      const asked = answerAsked(requestId, answer, bearing)
      await session.answering(requestId, this.#deposit(id, [asked], key && [key], patience))
    })
    await this.#waking.wake(id)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE · SG_ERR_SESSION_ENDED, and then nothing was interrupted */
  async interrupt({ id }: Session): Promise<void> {
    const live = await this.#waking.inTurn(id, async () => {
      const session = await this.#parts.load(id)
      if (session?.isServed) return session
      if (session?.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
      if (session?.parked || session?.live) await this.#interruptInTurn(session)
      return undefined
    })
    if (live) await live.interrupt()
    else await this.#waking.wake(id)
  }

  async #interruptInTurn(session: Session): Promise<void> {
    const { executions } = this.#parts
    // one that is being settled right now keeps its own result, which waits for its turn
    const claimed = session.executions.list().filter(({ executionId }) => executions.claim(executionId))
    const results = claimed.map(({ executionId }) => ({ type: 'result' as const, executionId, result: INTERRUPTED }))
    try {
      await this.#deposit(session.id, [...results, { type: 'interrupt' }])
    } catch (error) {
      for (const { executionId } of claimed) executions.unclaim(executionId)
      throw error
    }
    for (const { executionId } of claimed) executions.giveUp(session.id, executionId)
  }

  /**
   * Keeps what came in for a session without an engine; one may have gone on with it by then.
   * @throws SG_ERR_STORE_UNAVAILABLE · SG_ERR_SESSION_NOT_FOUND · SG_ERR_SESSION_ENDED
   */
  async #deposit(
    id: string,
    asked: readonly Asked[],
    keys?: readonly KeptKey[] | undefined,
    patience?: Patience,
  ): Promise<void> {
    const { keeping, table, telling } = this.#parts
    const news = asked.map(newsOf)
    if (!(await keeping.deposit(id, news, keys, patience))) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    const session = table.resident(id)
    // an engine that starts may have asked already what is answered
    const isItsOwn = session?.isServed || (session?.live && asked[0]?.type === 'answer')
    if (session?.ended || isItsOwn) session!.takeUp(news)
    else session?.expectNoMore(news)
    if (session?.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
    telling.onNews(id, news)
    if (session?.live) return
    table.onNews(id)
    this.#waking.expect(id)
  }

  /**
   * Hands a result to its session, or keeps it for when it wakes; resolves when that is durable.
   * @returns false when the session has ended, so that nothing waits for it
   * @throws SG_ERR_STORE_UNAVAILABLE; nothing was taken in then
   */
  async deliver(id: string, executionId: string, result: ExecutionResult): Promise<boolean> {
    const asked: Asked = { type: 'result', executionId, result }
    const live = this.#live(id)
    if (live && !this.isBusy(id)) return isTaken(live.accept(asked))
    return this.#waking.inTurn(id, async () => {
      const session = this.#live(id)
      if (session?.isServed) return isTaken(session.accept(asked))
      return (session !== undefined || this.#parts.table.isParked(id)) && isTaken(this.#deposit(id, [asked]))
    })
  }

  /** Wakes a session that a result was kept for. */
  wake(id: string): Promise<void> {
    return this.#live(id) && !this.isBusy(id) ? Promise.resolve() : this.#waking.wake(id)
  }

  /** Tries again at once to wake a session that could not be woken. */
  hasten(id: string): Promise<void> {
    return this.#waking.hasten(id)
  }

  /** @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
  remove(id: string, reason: SessionClosedReason): Promise<SessionInfo> {
    const { load, remove } = this.#parts
    const wasExpected = this.#waking.callOff(id)
    const removal = this.#parts.mailbox.run(id, async () => {
      const session = await load(id)
      if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
      return remove(session, reason)
    })
    if (wasExpected)
      removal.catch(() => {
        this.#waking.expect(id)
        void this.#waking.wake(id)
      })
    return removal
  }

  /** A session has ended, or was removed: nothing is to be woken of it. */
  forget(id: string): void {
    this.#waking.callOff(id)
    this.#fallingAsleep.forget(id)
  }

  /** What a journal that has only what sleeps has of a session that has ended is not needed any more. */
  onEnded(session: Session): void {
    const { id, life, executions } = session
    this.forget(id)
    // what was deferred in a turn that was over by then is to be done all the same
    if (life.is === 'ended' && life.inTurn) for (const one of executions.settled) this.#parts.executions.giveUp(id, one)
    if (session.midTurn) void this.#parts.mailbox.run(id, () => this.#parts.keeping.erase(id, session)).catch(() => {})
  }

  /** Takes up a session that an earlier process left in the middle of a turn. */
  adopt({ id, state, news = [] }: JournaledSession): void {
    const { clock, executions, expiredGraceMs } = this.#parts
    const { midTurn, settled = [], executions: pending = [], permissions: asked = [] } = state
    const now = clock.now()
    const came = news.flatMap((one) => (one.type === 'result' ? one.executionId : []))
    for (const executionId of [...settled, ...came, ...(midTurn?.results.map((one) => one.executionId) ?? [])])
      executions.remember(id, executionId)
    for (const { executionId, expiresAt } of pending) {
      if (!midTurn?.waits.includes(executionId)) continue
      const lapsed = expiresAt !== undefined && expiresAt < now
      executions.register(id, executionId, lapsed ? now + expiredGraceMs : expiresAt)
    }
    // what came in before an engine that could not be built is no news any more
    const cameIn =
      midTurn && (midTurn.interrupted || [...midTurn.results, ...midTurn.decisions].some(({ told }) => !told))
    // what an engine that stayed waited for may be over, and nothing have come of that before the process ended
    const isPending = (wait: string) =>
      pending.some(({ executionId }) => executionId === wait) || asked.some((request) => request.id === wait)
    const isOver = midTurn && !midTurn.waits.some(isPending)
    if (!midTurn?.due && !cameIn && !isOver && !news.some((one) => isForEngine(one) || one.type === 'close')) return
    this.#starts.goOn(id, midTurn?.endedSoon)
  }

  /** Runs `work` when nothing else is being done to the session, but for an engine that is being built for it. */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#waking.inTurn(id, work)
  }

  /** Whether something is being done to this session. */
  isBusy(id: string): boolean {
    return this.#parts.mailbox.isHeld(id)
  }

  /** For the end of the process: nothing wakes, or falls asleep by itself, any more. */
  close(): void {
    this.#waking.close()
    this.#starts.close()
    this.#fallingAsleep.close()
  }

  /**
   * Parks one that waits and ends what nothing is kept of to go on from; resolves when its engine is gone.
   * @param endsAt until when that is waited for, as `Clock.steady` counts
   */
  sleepNow(session: Session, endsAt: number): Promise<void> {
    return this.#fallingAsleep.sleepNow(session, endsAt)
  }

  #live(id: string): Session | undefined {
    const session = this.#parts.table.resident(id)
    return session?.live ? session : undefined
  }
}

/** False: the session has ended while that was written down. */
async function isTaken(taking: Promise<unknown>): Promise<boolean> {
  try {
    await taking
    return true
  } catch (error) {
    if (hasCode(error, 'SG_ERR_SESSION_ENDED')) return false
    throw error
  }
}
