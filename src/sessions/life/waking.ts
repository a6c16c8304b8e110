import { letGo } from '../../engines/built-runner.js'
import type { RunnerSnapshot } from '../../engines/runner.js'
import { GatewayError, isOf, toError } from '../../errors.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Clock, Timer } from '../../lib/clock.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import type { Logger } from '../../lib/logger.js'
import type { Patience } from '../../lib/patience.js'
import { within } from '../../lib/within.js'
import type { Admission } from '../admission.js'
import type { JournaledWhole, KeptSnapshot } from '../kept/journal.js'
import type { Keeping } from '../kept/keeping.js'
import { asleep } from '../kept/mid-turn.js'
import { snapshotWith } from '../kept/snapshot-files.js'
import { cutOffTurns } from '../log/cut-off-turns.js'
import type { Session } from '../session.js'
import { withChoice } from '../session-facts.js'
import type { SessionTable } from '../session-table.js'
import type { Sharing } from '../sharing.js'
import { EndedSoon } from './ended-soon.js'
import { isFinal, nodeAway, reasonOf } from './refusals.js'
import { START_LIMIT_MS } from './runner-link.js'

/** Between tries to start an engine for what waits. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 5 * 60_000 }
/** How long whoever brought the news waits for the session to be live again; the news is durable by then. */
const WAKE_PATIENCE_MS = 5_000

/** Nobody wants the start any more. */
class CalledOff extends Error {}

/** What falling asleep and waking both need. */
export interface SleepParts {
  clock: Clock
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  logger: Logger
  keeping: Keeping
  admission: Admission
  table: SessionTable
  /** Absent: one process has all sessions. */
  sharing?: Sharing | undefined
  /** The session, read into memory when it is not there; `undefined` when it is gone. @param whole what the journal has of it */
  load(id: string, whole?: JournaledWhole, patience?: Patience): Promise<Session | undefined>
  /** What is done to one session without an engine is done one step after the other. */
  mailbox: KeyedLock
}

/**
 * Gives sessions that sleep an engine again: one start per session at a time. For a turn or messages that wait it is tried until it
 * succeeds or that is known to be in vain; whoever asks for it with a command is told why there is none.
 */
export class Waking {
  readonly #parts: SleepParts
  readonly #endedSoon: EndedSoon
  /** Parked sessions that go on, or that something came in for; true: since the process started, which is counted. */
  readonly #expected = new Map<string, boolean>()
  readonly #retries = new Map<string, { timer: Timer; tries: number }>()
  readonly #callOffs = new Map<string, (reason: Error) => void>()
  /** Parked sessions that an engine is being built for, which may take minutes. */
  readonly #underWay = new Set<string>()
  readonly #beside = new KeyedLock()
  /** By session, what waits in a mailbox and goes on beside it when an engine is built first; each begins once. */
  readonly #waiting = new Map<string, Set<() => Promise<unknown>>>()
  #closed = false

  constructor(parts: SleepParts) {
    this.#parts = parts
    this.#endedSoon = new EndedSoon(parts)
  }

  /** Something came in for a parked session, or it goes on with its turn since the process starts. */
  expect(id: string, isStart = false): void {
    this.#expected.set(id, isStart || this.#expected.get(id) === true)
  }

  /** Wakes a parked session that has news. Resolves when it is live, or has not been for a while; never rejects. */
  async wake(id: string): Promise<void> {
    if (this.#closed) return
    const { clock, mailbox } = this.#parts
    const waking = mailbox.run(id, () => this.#wakeInTurn(id))
    await within(WAKE_PATIENCE_MS, waking, { clock })
  }

  /** Tries again at once what would have been tried later. */
  async hasten(id: string): Promise<void> {
    if (this.#retries.has(id)) await this.wake(id)
  }

  /**
   * Does in the mailbox of a session what is not to wait for the engine that is being built for it: beside that, one after the other. The
   * session is in memory then, and may go on with its engine, or without one, before it is done.
   */
  inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (this.#underWay.has(id)) return this.#beside.run(id, work)
    return new Promise((resolve) => {
      let begun: Promise<T> | undefined
      const begin = () => {
        if (begun) return begun
        begun = work()
        resolve(begun)
        this.#waitsNoMore(id, begin)
        return begun
      }
      const waiting = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, waiting.add(begin))
      this.#parts.mailbox.run(id, begin).catch(() => {})
    })
  }

  #waitsNoMore(id: string, begin: () => Promise<unknown>): void {
    const waiting = this.#waiting.get(id)
    waiting?.delete(begin)
    if (waiting?.size === 0) this.#waiting.delete(id)
  }

  /**
   * Gives a session that waits for nothing an engine for a command; resolves when it takes commands.
   * @throws SG_ERR_PROFILE_CHANGED · SG_ERR_AGENT_STATE_GONE, and the session has failed then; any other refusal leaves it as it is
   */
  async rouse(session: Session): Promise<void> {
    if (this.#closed) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
    const { mailbox } = this.#parts
    try {
      await mailbox.run(session.id, () => this.#rouseInTurn(session))
    } catch (error) {
      if (!isOf(CalledOff, error)) throw error
      // the removal that it was called off for may be refused
      await mailbox.run(session.id, () => {})
      if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED', { cause: error })
      await this.rouse(session)
    }
  }

  async #rouseInTurn(session: Session): Promise<void> {
    if (!session.asleepIdle) return
    const { table, logger } = this.#parts
    const { id } = session
    const away = table.get(id)?.away
    if (away !== undefined) throw nodeAway(away)
    table.onEngine(session, true)
    try {
      await this.bringBack(session, session.leaveDesk.snapshot)
    } catch (error) {
      table.onEngine(session, false)
      const isCalledOff = isOf(CalledOff, error)
      if (!isCalledOff)
        logger.error({ sessionId: id, err: toError(error) }, 'the engine of a session could not be started again')
      if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
      if (this.#closed) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
      if (isCalledOff) throw error
      if (!isOf(GatewayError, error)) throw new GatewayError('SG_ERR_ENGINE_START', { cause: error })
      if (isFinal(error.code, 'idle')) session.fail(error.message, error.code)
      throw error
    }
    this.#forget(id)
  }

  /** Sees to it that a session goes on with the messages that wait in it; tries until it does, or has ended. Never rejects. */
  async goOn(session: Session): Promise<void> {
    try {
      await this.rouse(session)
    } catch (error) {
      if (this.#closed || session.ended) return
      session.facts.statusDetail = `Could not go on, and is tried again: ${reasonOf(error)}`
      session.touch()
      this.#retry(session.id, () => this.#goOnIfDue(session))
    }
  }

  /** What waited in it may have been interrupted since. */
  async #goOnIfDue(session: Session): Promise<void> {
    if (session.busy) return this.goOn(session)
    this.#forget(session.id)
    session.facts.statusDetail = undefined
    session.touch()
  }

  async #wakeInTurn(id: string): Promise<void> {
    const { table, keeping, load } = this.#parts
    if (this.#closed || !table.isParked(id) || !this.#expected.has(id)) return
    // what came in is kept, and its own node goes on with it
    if (table.get(id)?.away !== undefined) return
    let whole: JournaledWhole | undefined
    let session: Session | undefined
    const isStart = this.#expected.get(id) === true
    try {
      await table.resident(id)?.durable()
      whole = await keeping.get(id)
      session = whole && (await load(id, whole))
      if (session && isStart) await this.#endedSoon.count(session)
    } catch (error) {
      keeping.report(error, { sessionId: id, phase: 'wake' })
      this.#retry(id, () => this.wake(id))
      return
    }
    // once the process ends nobody ends an engine that starts
    if (this.#closed || !session || session.ended || !whole?.snapshot) {
      if (session && isStart) this.#endedSoon.takeBack(session)
      return
    }
    table.onEngine(session, true)
    session.takeIn(whole)
    try {
      await this.#bringBackParked(session, whole.snapshot)
      this.#forget(id)
      this.#endedSoon.clearLater(session)
    } catch (error) {
      if (isStart) this.#endedSoon.takeBack(session)
      await this.#onFailed(session, whole.snapshot, error)
    }
  }

  async #bringBackParked(session: Session, snapshot: RunnerSnapshot): Promise<void> {
    const { id } = session
    this.#underWay.add(id)
    for (const begin of this.#waiting.get(id) ?? []) this.#beside.run(id, begin).catch(() => {})
    try {
      await this.bringBack(session, snapshot)
    } finally {
      this.#underWay.delete(id)
      // what comes next finds what came meanwhile
      await this.#beside.run(id, () => {})
    }
  }

  /** What trying again cannot change ends the session; anything else keeps the park and its news for another try. */
  async #onFailed(session: Session, snapshot: RunnerSnapshot, error: unknown): Promise<void> {
    const { id } = session
    const { keeping, table } = this.#parts
    const isCalledOff = isOf(CalledOff, error)
    if (!isCalledOff) keeping.report(error, { sessionId: id, phase: 'wake' })
    // all is told of it
    if (session.ended) return
    if (isOf(GatewayError, error) && isFinal(error.code, 'parked')) {
      session.fail(error.message, error.code)
      return
    }
    if (!this.#closed) this.#retry(id, () => this.wake(id))
    session.leaveDesk.showParkedAgain(
      isCalledOff ? undefined : `Could not wake, and is tried again: ${reasonOf(error)}`,
    )
    if (!keeping.hasAll)
      await keeping.write(asleep(session, snapshot)).then(
        () => {
          session.isAhead = false
        },
        () => {
          session.isAhead = true
        },
      )
    table.onEngine(session, false)
  }

  /**
   * Lets a session in again and starts the engine that is built from the snapshot, within a time limit.
   * @throws why it could not; the session has no engine then
   */
  async bringBack(session: Session, snapshot: KeptSnapshot | undefined): Promise<void> {
    const { admission, clock } = this.#parts
    const { info, generation } = session.profile
    let limit: Timer | undefined
    let handedOver = false
    const givenUp = new Promise<never>((_, reject) => {
      this.#callOffs.set(session.id, reject)
      limit = clock.after(START_LIMIT_MS, () => reject(new Error('The engine did not start in time.')))
    })
    try {
      const building = admission.readmit(withChoice(session), info.name, generation).then(async (admitted) => {
        const cutOff = await cutOffTurns(session, snapshot)
        const restore = snapshot && snapshotWith(restoreOf(snapshot), session.delivered)
        const runner = await admission.buildRunner(admitted, session.id, session.bridge, restore, cutOff)
        return { config: admitted.config, runner, isAhead: cutOff.length > 0 }
      })
      givenUp.catch(() => {
        if (!handedOver) building.then(({ runner }) => letGo(runner, clock)).catch(() => {})
      })
      const { runner, config, isAhead } = await Promise.race([building, givenUp])
      handedOver = true
      // in the very turn in which its engine was built
      if (session.ended) {
        void letGo(runner, clock)
        throw new CalledOff('The session has ended.')
      }
      await session.engine.wake(runner, config, givenUp, isAhead)
    } finally {
      limit?.cancel()
      this.#callOffs.delete(session.id)
    }
  }

  /** Nothing is to be woken of a session any more: it ends, or is removed. @returns whether there was something to wake it for */
  callOff(id: string): boolean {
    const wasExpected = this.#expected.has(id)
    this.#callOffs.get(id)?.(new CalledOff('The session is being removed.'))
    this.#forget(id)
    return wasExpected
  }

  #forget(id: string): void {
    this.#expected.delete(id)
    this.#retries.get(id)?.timer.cancel()
    this.#retries.delete(id)
  }

  /** No engine is started any more. */
  close(): void {
    this.#closed = true
    this.#endedSoon.close()
    for (const { timer } of this.#retries.values()) timer.cancel()
    for (const callOff of this.#callOffs.values()) callOff(new CalledOff('The gateway is shutting down.'))
  }

  #retry(id: string, again: () => Promise<void>): void {
    const earlier = this.#retries.get(id)
    earlier?.timer.cancel()
    const tries = (earlier?.tries ?? 0) + 1
    const timer = this.#parts.retryAfter(delayAfter(tries, RETRY), () => void again())
    this.#retries.set(id, { timer, tries })
  }
}

const restoreOf = ({ logged: _ours, ...restore }: KeptSnapshot): RunnerSnapshot => restore
