import { CLOSE } from '../../schemas/close-codes.js'
import { SessionClosedReason } from '../../schemas/events.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { GatewayError, invalidField } from '../errors.js'
import type { Timer } from '../lib/clock.js'
import type { Listeners } from '../lib/listeners.js'
import { WallAlarm } from '../lib/wall-alarm.js'
import type { Archive } from './kept/archive.js'
import type { Keeping } from './kept/keeping.js'
import type { Sleep } from './life/sleep.js'
import type { RegistryEvents, RegistryOptions } from './registry-options.js'
import type { Session } from './session.js'
import { infoOf } from './session-entry.js'
import type { SessionTable } from './session-table.js'
import type { Telling } from './telling.js'

/** When one that could not be removed is tried again. */
const AGAIN_MS = 10_000

const REASONS: readonly string[] = SessionClosedReason.anyOf.map((reason) => reason.const)

/** A reason stands in the last event of the log, and in what is told of it: words of a host's own are none that a client knows. */
export function assertReason(reason: SessionClosedReason): void {
  if (!REASONS.includes(reason)) throw invalidField('reason', `is one of ${REASONS.join(', ')}.`)
}

interface RemovalsParts
  extends Pick<RegistryOptions, 'clock' | 'dispatcher' | 'executions' | 'sessionRetentionMs' | 'onClosing'> {
  archive: Pick<Archive, 'hide' | 'unhide'>
  keeping: Keeping
  listeners: Listeners<RegistryEvents>
  sleep: Sleep
  table: SessionTable
  telling: Telling
}

/** Takes sessions out, with what is kept of them: those that somebody removes, and those that ended long enough ago. */
export class Removals {
  readonly #parts: RemovalsParts

  constructor(parts: RemovalsParts) {
    this.#parts = parts
  }

  async closeAndRemove(session: Session, reason: SessionClosedReason): Promise<SessionInfo> {
    const { id } = session
    if (this.#parts.keeping.hasAll || session.midTurn)
      await this.#removeKept(id, reason).catch((error) => {
        // it stays, and what it would have done meanwhile it does now
        this.#parts.sleep.consider(session)
        throw error
      })
    if (!this.#parts.table.get(id)) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    if (session.ended) session.clients.disconnectAll(CLOSE.sessionRemoved)
    // ended before it is taken out, so that its last events find it; taken out before anything is waited for
    const ending = session.close(reason)
    this.#hideUntilGone(session)
    this.remove(id)
    await ending
    // no client is shown more of it
    return session.info(session.log.headSeq)
  }

  /** The journal may have it for a moment still: whoever asks for it then must not take it up, to be removed and told of again. */
  #hideUntilGone(session: Session): void {
    const { archive, keeping } = this.#parts
    if (!keeping.hasAll) return
    archive.hide(session.id)
    const unhide = () => archive.unhide(session.id)
    session.erase().then(unhide, unhide)
  }

  /** Durable before it is said. @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
  async #removeKept(id: string, reason?: SessionClosedReason): Promise<void> {
    const { keeping, table, telling, onClosing } = this.#parts
    const entry = table.get(id)
    if (entry && reason === 'client') await onClosing?.(infoOf(entry))
    const session = table.resident(id)
    if (reason === undefined) await keeping.erase(id, session)
    else await keeping.remove(id, session, { reason, ending: () => session && telling.endingOf(session, reason) })
    const readMeanwhile = table.resident(id)
    if (readMeanwhile !== session) await keeping.erase(id, readMeanwhile)
  }

  /** Takes one out of which nothing is kept any more. */
  remove(id: string): void {
    const { table, sleep, executions, dispatcher, telling, listeners } = this.#parts
    const session = table.resident(id)
    if (!table.remove(id)) return
    sleep.forget(id)
    executions.forget(id)
    dispatcher.withdraw(id)
    telling.onRemoved(id)
    if (!listeners.has('session_removed')) return
    const tell = () => listeners.emit('session_removed', { sessionId: id })
    if (session) session.whenDurable(tell)
    else tell()
  }

  /** A terminal session goes when its time is over. */
  retainUntil(id: string, endedAt: number): void {
    const { sessionRetentionMs, clock } = this.#parts
    if (sessionRetentionMs === undefined) return
    this.#goLater(id, (go) => {
      const alarm = new WallAlarm(clock, go)
      alarm.set(endedAt + sessionRetentionMs)
      return { cancel: () => alarm.set(undefined) }
    })
  }

  #goLater(id: string, later: (go: () => void) => Timer): void {
    const entry = this.#parts.table.get(id)
    if (!entry) return
    entry.retention = later(() => {
      entry.session?.clients.disconnectAll(CLOSE.sessionRemoved)
      // reported
      this.forget(id).catch(() => this.#goLater(id, (go) => this.#parts.keeping.retryAfter(AGAIN_MS, go)))
    })
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE; it stays then */
  async forget(id: string): Promise<void> {
    const { table, keeping } = this.#parts
    await table.holding(async () => {
      if (keeping.hasAll) await this.#removeKept(id)
      this.remove(id)
    })
  }
}
