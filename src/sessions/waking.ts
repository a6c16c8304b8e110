import { GatewayError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { KeyedLock } from '../lib/keyed-lock.js'
import { CalledOff, type EngineStarter } from './engine-start.js'
import type { ParkShelf } from './park-shelf.js'
import { isFinal, reasonOf } from './refusals.js'
import type { Session } from './session.js'
import type { ParkedSessionRecord } from './store.js'

/** A wake that failed is tried again after this, doubled each time up to the longest. */
const WAKE_RETRY_MS = 1_000
const LONGEST_WAKE_RETRY_MS = 5 * 60_000
/** How long whoever brought the news waits for the session to be live again; the news is durable by then. */
const WAKE_PATIENCE_MS = 5_000

/** What waking needs of whoever holds the sessions. */
export interface WakingHost {
  /** The session, when it is in memory; `undefined` when it is parked or not there. */
  resident(id: string): Session | undefined
  isParked(id: string): boolean
  /** Makes a Session of a record and holds it. */
  restore(record: ParkedSessionRecord): Session
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
  shelf: ParkShelf
  starter: EngineStarter
  host: WakingHost
}

/** Gives parked sessions that have news an engine again: one rebuild per session at a time, tried until it succeeds or that is known to be in vain. */
export class Waker {
  readonly #parts: WakingParts
  readonly #retries = new Map<string, { timer: Timer; delayMs: number }>()
  #closed = false

  constructor(parts: WakingParts) {
    this.#parts = parts
  }

  /** Wakes a session that has news. Resolves when it is live, or has not been for a while; never rejects. */
  async wake(id: string): Promise<void> {
    if (this.#closed) return
    const { clock, lock } = this.#parts
    let patience: Timer | undefined
    const waited = new Promise<void>((resolve) => {
      patience = clock.after(WAKE_PATIENCE_MS, resolve)
    })
    await Promise.race([lock.run(id, () => this.#wakeInTurn(id)), waited])
    patience?.cancel()
  }

  /** Tries again at once what would have been tried later. */
  async hasten(id: string): Promise<void> {
    if (this.#retries.has(id)) await this.wake(id)
  }

  /** Ends the wakes of a session that is going to be removed. */
  callOff(id: string): void {
    this.#parts.starter.callOff(id)
    this.#retries.get(id)?.timer.cancel()
    this.#retries.delete(id)
  }

  close(): void {
    this.#closed = true
    for (const { timer } of this.#retries.values()) timer.cancel()
    this.#parts.starter.callOffAll()
  }

  async #wakeInTurn(id: string): Promise<void> {
    const { host, shelf } = this.#parts
    if (this.#closed || !host.isParked(id)) return
    let record: ParkedSessionRecord | undefined
    let session: Session
    try {
      record = await shelf.get(id)
      if (!record?.hasNews) return
      session = host.resident(id) ?? host.restore(record)
    } catch (error) {
      shelf.report(error, { sessionId: id, phase: 'wake' })
      this.#retry(id)
      return
    }
    host.onWaking(session)
    try {
      await this.bringBack(session, record)
      this.#retries.get(id)?.timer.cancel()
      this.#retries.delete(id)
    } catch (error) {
      await this.#onFailed(session, record, error)
    }
  }

  /** @throws why it could not; the session has no engine then */
  bringBack(session: Session, record: ParkedSessionRecord): Promise<void> {
    const { config, profile, generation, snapshot } = record
    return this.#parts.starter.start(session, {
      ...{ config, profile, generation, snapshot },
      begin: (runner, admitted, givenUp) => session.resume(runner, admitted, record, givenUp),
    })
  }

  /** What trying again cannot change ends the session; anything else keeps the park and its news for another try. */
  async #onFailed(session: Session, record: ParkedSessionRecord, error: unknown): Promise<void> {
    const { id } = session
    const { shelf, host } = this.#parts
    if (!(error instanceof CalledOff)) shelf.report(error, { sessionId: id, phase: 'wake' })
    if (error instanceof GatewayError && isFinal(error.code)) {
      session.fail(error.message, error.code)
      return
    }
    if (!this.#closed) this.#retry(id)
    session.showParkedAgain(`Could not wake, and is tried again: ${reasonOf(error)}`, record)
    const { log, facts } = session
    record.decisions = session.carried
    record.info = {
      ...record.info,
      lastSeq: log.isJournaled ? log.headSeq : log.lastSeq,
      lastActivityAt: facts.lastActivityAt,
    }
    if (facts.statusDetail !== undefined) record.info.statusDetail = facts.statusDetail
    record.log = { epoch: log.epoch, oldestSeq: log.oldestSeq, events: log.toText() }
    await shelf.save(record).catch(() => {})
    host.onStillParked(session)
  }

  #retry(id: string): void {
    const earlier = this.#retries.get(id)
    earlier?.timer.cancel()
    const delayMs = Math.min((earlier?.delayMs ?? WAKE_RETRY_MS / 2) * 2, LONGEST_WAKE_RETRY_MS)
    const timer = this.#parts.retryAfter(delayMs, () => void this.wake(id))
    this.#retries.set(id, { timer, delayMs })
  }
}
