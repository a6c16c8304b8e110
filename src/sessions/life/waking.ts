import type { RunnerSnapshot } from '../../engines/runner.js'
import { GatewayError } from '../../errors.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Clock, Timer } from '../../lib/clock.js'
import type { KeyedLock } from '../../lib/keyed-lock.js'
import { within } from '../../lib/within.js'
import type { JournaledWhole, MidTurn } from '../kept/journal.js'
import type { Keeping } from '../kept/keeping.js'
import type { Session } from '../session.js'
import { CalledOff, type EngineStarter } from './engine-start.js'
import { isFinal, reasonOf } from './refusals.js'

/** A wake that failed is tried again after this, doubled each time up to the longest. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 5 * 60_000 }
/** How long whoever brought the news waits for the session to be live again; the news is durable by then. */
const WAKE_PATIENCE_MS = 5_000

/** What waking needs of whoever holds the sessions. */
export interface WakingHost {
  /** The session, when it is in memory. */
  resident(id: string): Session | undefined
  isParked(id: string): boolean
  /** The session, read into memory when it is not there; `undefined` when it is gone. @param whole what the journal has of it */
  load(id: string, whole?: JournaledWhole): Promise<Session | undefined>
  /** A parked session is about to have an engine again. */
  onWaking(session: Session): void
  /** It has none after all. */
  onStillParked(session: Session): void
}

export interface WakingParts {
  clock: Clock
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  lock: KeyedLock
  keeping: Keeping
  starter: EngineStarter
  host: WakingHost
}

/** Gives parked sessions that have news an engine again: one rebuild per session at a time, tried until it succeeds or that is known to be in vain. */
export class Waker {
  readonly #parts: WakingParts
  /** Sessions that something came in for since they were parked. */
  readonly #expected = new Set<string>()
  readonly #retries = new Map<string, { timer: Timer; tries: number }>()
  #closed = false

  constructor(parts: WakingParts) {
    this.#parts = parts
  }

  /** Something came in for a session. */
  expect(id: string): void {
    this.#expected.add(id)
  }

  /** Wakes a session that has news. Resolves when it is live, or has not been for a while; never rejects. */
  async wake(id: string): Promise<void> {
    if (this.#closed) return
    const { clock, lock } = this.#parts
    const waking = lock.run(id, () => this.#wakeInTurn(id))
    await within(WAKE_PATIENCE_MS, waking, { clock })
  }

  /** Tries again at once what would have been tried later. */
  async hasten(id: string): Promise<void> {
    if (this.#retries.has(id)) await this.wake(id)
  }

  /** Ends the wakes of a session that is going to be removed. @returns whether there was something to wake it for */
  callOff(id: string): boolean {
    const wasExpected = this.#expected.has(id)
    this.#parts.starter.callOff(id)
    this.#forget(id)
    return wasExpected
  }

  #forget(id: string): void {
    this.#expected.delete(id)
    this.#retries.get(id)?.timer.cancel()
    this.#retries.delete(id)
  }

  close(): void {
    this.#closed = true
    for (const { timer } of this.#retries.values()) timer.cancel()
    this.#parts.starter.callOffAll()
  }

  async #wakeInTurn(id: string): Promise<void> {
    const { host, keeping } = this.#parts
    if (this.#closed || !host.isParked(id) || !this.#expected.has(id)) return
    let whole: JournaledWhole | undefined
    let session: Session | undefined
    try {
      await host.resident(id)?.durable()
      whole = await keeping.get(id)
      session = whole && (await host.load(id, whole))
    } catch (error) {
      keeping.report(error, { sessionId: id, phase: 'wake' })
      this.#retry(id)
      return
    }
    if (!session || session.ended || !whole?.snapshot) return
    host.onWaking(session)
    session.takeIn(whole)
    try {
      await this.bringBack(session, whole.snapshot)
      this.#forget(id)
    } catch (error) {
      await this.#onFailed(session, whole.snapshot, error)
    }
  }

  /** @throws why it could not; the session has no engine then */
  bringBack(session: Session, snapshot: RunnerSnapshot): Promise<void> {
    const midTurn: MidTurn = session.midTurn ?? { since: 0, waits: [], results: [], decisions: [] }
    return this.#parts.starter.start(session, snapshot, (runner, config, givenUp) =>
      session.resume(runner, config, midTurn, givenUp),
    )
  }

  /** What trying again cannot change ends the session; anything else keeps the park and its news for another try. */
  async #onFailed(session: Session, snapshot: RunnerSnapshot, error: unknown): Promise<void> {
    const { id } = session
    const { keeping, host } = this.#parts
    if (!(error instanceof CalledOff)) keeping.report(error, { sessionId: id, phase: 'wake' })
    if (error instanceof GatewayError && isFinal(error.code)) {
      session.fail(error.message, error.code)
      return
    }
    if (!this.#closed) this.#retry(id)
    session.showParkedAgain(`Could not wake, and is tried again: ${reasonOf(error)}`)
    if (!keeping.hasAll) await keeping.write(session.asleep(snapshot)).catch(() => {})
    host.onStillParked(session)
  }

  #retry(id: string): void {
    const earlier = this.#retries.get(id)
    earlier?.timer.cancel()
    const tries = (earlier?.tries ?? 0) + 1
    const timer = this.#parts.retryAfter(delayAfter(tries, RETRY), () => void this.wake(id))
    this.#retries.set(id, { timer, tries })
  }
}
