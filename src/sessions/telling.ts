import type { SessionClosedReason, SessionEvent, SessionEventBody } from '../../schemas/events.js'
import type { Clock } from '../lib/clock.js'
import type { Listeners } from '../lib/listeners.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { RegistryEvents, RegistryOptions } from './registry-options.js'
import type { Session } from './session.js'

/** Numbers that a session may still use while it is being removed. */
const ENDING_AHEAD = 1_000

export interface TellingParts {
  clock: Clock
  notify: RegistryOptions['notify']
  listeners: Listeners<RegistryEvents>
}

/** Tells of what happens to sessions, once it is durable: observers in this process, and whoever is notified outside. */
export class Telling {
  readonly #parts: TellingParts

  constructor(parts: TellingParts) {
    this.#parts = parts
  }

  onEvent(session: Session, body: SessionEventBody, seq: number, ts: number): void {
    const { notify, listeners } = this.#parts
    const { ending } = session
    // told ahead, and kept with the removal
    if (ending?.isKept && body.type === 'session_closed') session.whenDurable(ending.send)
    else {
      const notification = notify?.(body, { seq, ts }, () => session.info(seq))
      if (notification) session.tell(notification)
    }
    const isRunHeard = session.jobId !== undefined && listeners.has('run_event')
    const isHeard = listeners.has('session_event')
    if (!isRunHeard && !isHeard) return
    const sessionId = session.id
    const event: SessionEvent = { seq, ts, ...body }
    event.seq = seq
    event.ts = ts
    if (isRunHeard) this.tell(session, 'run_event', { sessionId, event, run: session.runState() })
    if (isHeard) this.tell(session, 'session_event', { sessionId, event, session: session.info(seq) })
  }

  onHeld(session: Session): void {
    this.tell(session, 'run_held', { sessionId: session.id, run: session.runState() })
  }

  /** Nobody hears of what a crash could take back. */
  tell<E extends keyof RegistryEvents & string>(session: Session, event: E, payload: RegistryEvents[E]): void {
    session.whenDurable(() => this.#parts.listeners.emit(event, payload))
  }

  /** What is to be told of a session's end, for the removal to keep: in case the process dies before the session has ended. */
  endingOf(session: Session, reason: SessionClosedReason): PlannedNotification | undefined {
    const { notify, clock } = this.#parts
    if (!notify || session.ended) return undefined
    const { closingSeq = 0, log } = session
    const place = { seq: closingSeq > log.lastSeq ? closingSeq : log.lastSeq + ENDING_AHEAD, ts: clock.now() }
    const info = () => ({ ...session.info(place.seq), status: 'closed' as const, pendingPermissions: 0 })
    const planned = notify({ type: 'session_closed', reason }, place, info)
    // told once, by whichever process
    session.ending = planned
    session.closingSeq = place.seq
    return planned
  }
}
