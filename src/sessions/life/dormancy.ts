import { type ErrorCode, GatewayError, toError } from '../../errors.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Clock, Timer } from '../../lib/clock.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import type { Logger } from '../../lib/logger.js'
import type { Session } from '../session.js'
import type { SessionDormancy } from '../session-world.js'
import type { EngineStarter } from './engine-start.js'
import { reasonOf } from './refusals.js'

/** Between tries to start an engine for messages that wait. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 5 * 60_000 }

/** After these refusals no engine can ever go on with the session. */
const ENDS_SESSION: ReadonlySet<string> = new Set<ErrorCode>(['SG_ERR_PROFILE_CHANGED', 'SG_ERR_AGENT_STATE_GONE'])

export interface DormancyParts {
  clock: Clock
  logger: Logger
  starter: EngineStarter
  /** After that long without a turn or a client the engine of a session goes; `undefined`: never. */
  idleReleaseMs: number | undefined
  /** A session is about to have an engine again, or has none any more. */
  onEngine(session: Session, has: boolean): void
}

/** Takes engines from idle sessions and gives them back when they are needed: one start per session at a time. */
export class Dormancy implements SessionDormancy {
  readonly #parts: DormancyParts
  readonly #lock = new KeyedLock()
  readonly #timers = new Map<string, Timer>()
  /** Starts for messages that wait, to be tried again. */
  readonly #retries = new Map<string, Timer>()
  #closed = false

  constructor(parts: DormancyParts) {
    this.#parts = parts
  }

  /** @throws SG_ERR_PROFILE_CHANGED · SG_ERR_AGENT_STATE_GONE, and the session has failed then; any other refusal leaves it as it is */
  async rouse(session: Session): Promise<void> {
    if (this.#closed) throw new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })
    await this.#lock.run(session.id, () => this.#rouseInTurn(session))
  }

  async #rouseInTurn(session: Session): Promise<void> {
    if (!session.dormant) return
    const { starter, onEngine, logger } = this.#parts
    onEngine(session, true)
    try {
      await starter.start(session, session.kept, (runner, config, givenUp) => session.reopen(runner, config, givenUp))
    } catch (error) {
      onEngine(session, false)
      logger.error({ sessionId: session.id, err: toError(error) }, 'the engine of a session could not be started again')
      if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED')
      if (this.#closed) throw new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })
      if (error instanceof GatewayError && ENDS_SESSION.has(error.code)) session.fail(error.message, error.code)
      throw error instanceof GatewayError ? error : new GatewayError('SG_ERR_ENGINE_START', { cause: error })
    }
  }

  /** Sees to it that a session goes on with the messages that wait in it; tries until it does, or has ended. Never rejects. */
  async goOn(session: Session, tries = 1): Promise<void> {
    this.#retries.get(session.id)?.cancel()
    this.#retries.delete(session.id)
    try {
      await this.rouse(session)
    } catch (error) {
      if (this.#closed || session.ended) return
      session.facts.statusDetail = `Could not go on, and is tried again: ${reasonOf(error)}`
      session.touch()
      const again = () => void this.goOn(session, tries + 1)
      this.#retries.set(session.id, this.#parts.clock.after(delayAfter(tries, RETRY), again))
    }
  }

  /** Looks in turn, as its engine may be started at the moment, whether it is to go; and again when it may be. */
  consider(session: Session): void {
    const { idleReleaseMs } = this.#parts
    if (idleReleaseMs === undefined) return
    void this.#lock.run(session.id, () => this.#releaseIfDue(session, idleReleaseMs))
  }

  async #releaseIfDue(session: Session, idleReleaseMs: number): Promise<void> {
    const { clock, logger, onEngine } = this.#parts
    this.#timers.get(session.id)?.cancel()
    this.#timers.delete(session.id)
    if (this.#closed || !session.canRelease) return
    const idleSince = Math.max(session.facts.lastActivityAt, session.clients.leftAt ?? 0)
    const delayMs = idleSince + idleReleaseMs - clock.now()
    if (delayMs > 0) {
      const timer = clock.after(delayMs, () => this.consider(session))
      this.#timers.set(session.id, timer)
      return
    }
    try {
      const gone = session.release()
      if (!session.live) onEngine(session, false)
      await gone
    } catch (error) {
      logger.error({ sessionId: session.id, err: toError(error) }, 'the engine of an idle session could not be let go')
    }
  }

  onSpent(session: Session): void {
    const { logger, onEngine } = this.#parts
    session.release().catch((error) => {
      logger.error({ sessionId: session.id, err: toError(error) }, 'the engine that was ended left something behind')
    })
    if (session.live) return
    onEngine(session, false)
    if (session.hasWaiting && !this.#closed) void this.goOn(session)
  }

  /** A session is removed or has ended. */
  forget(id: string): void {
    for (const timers of [this.#timers, this.#retries]) {
      timers.get(id)?.cancel()
      timers.delete(id)
    }
    this.#parts.starter.callOff(id)
  }

  /** Whether an engine is being started or let go. */
  isBusy(id: string): boolean {
    return this.#lock.isHeld(id)
  }

  /** No engine is started or let go any more. */
  close(): void {
    this.#closed = true
    for (const timer of [...this.#timers.values(), ...this.#retries.values()]) timer.cancel()
  }
}
