import type { SessionEvent } from '../../schemas/events.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { MomentEvent } from '../engines/event-types.js'
import type { TakenKey } from '../idempotency/making.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import type { EventRows } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import type { PlannedNotification, ToldRequest } from '../notifications/planned.js'
import type { Principal } from '../principal.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { CountedSession } from '../usage/count.js'
import type { Admission } from './admission.js'
import type { WaitingObserver } from './asks/waiting.js'
import type { SessionJournal } from './kept/journal.js'
import type { ParkingOptions } from './kept/keeping.js'
import type { Place } from './places.js'
import type { SessionWorld } from './session-world.js'

export interface SessionEventTold {
  sessionId: string
  event: SessionEvent
  session: SessionInfo
  /** It waits as a parked session does, with its engine: somebody is attached. */
  held?: true
}

/** Which sessions an observer is about. */
export interface Observed {
  readonly id: string
  readonly jobId: string | undefined
}

/** What observers of the registry hear, after it took effect. */
export interface RegistryEvents extends Record<string, unknown> {
  session_created: { session: SessionInfo }
  /** `session` is the SessionInfo as the event left it. */
  session_event: SessionEventTold
  /** The run of a job is held: it has waited for `parkDelayMs` while somebody is attached. The first event that is not held ends it. */
  session_held: { sessionId: string; executionId: string | undefined }
  session_removed: { sessionId: string }
  /** One more session may live, after there were as many as may. */
  room: Record<string, never>
}
export const SESSION_EVENTS: EventRows<RegistryEvents> = {
  session_created: true,
  session_event: true,
  session_held: true,
  session_removed: true,
  room: true,
}

/**
 * Hears that a turn of a job's run is over before that is durable: nobody may be told. What is asked of the storage because of it in the same
 * turn of the event loop is in the same write.
 * @param untold everything that `session_event` will tell up to there
 */
export type OnTurnOver = (sessionId: string, untold: readonly SessionEventTold[]) => void

/**
 * Hears that a model call of a job's run was counted before that is durable: nobody may be told. An engine takes no further step before that.
 * @param untold everything that `session_event` will tell up to there
 */
export type OnCallCounted = OnTurnOver

/** Who has what is told of sessions kept with it. */
export interface SessionObservers {
  notifier: {
    /** What is to be told outside of an event, if anything. */
    notify(
      body: MomentEvent,
      place: { seq: number; ts: number },
      info: () => SessionInfo,
    ): PlannedNotification | undefined
    /** A session was read into memory: these requests of it were told of by an earlier process, or when it was in memory before. */
    onRestored(sessionId: string, requests: readonly ToldRequest[]): void
  }
  usage: {
    /** What an event counts for, if anything. */
    count(body: MomentEvent, ts: number, session: CountedSession): PlannedNotification | undefined
  }
  /** Is told which requests wait for a person. */
  inbox: WaitingObserver
  /** The queue. */
  onTurnOver?: OnTurnOver | undefined
  onCallCounted?: OnCallCounted | undefined
}

export interface RegistryOptions
  extends Omit<SessionWorld, 'observer' | 'onEnded' | 'operatorLog' | 'keeping' | 'sleep' | 'sessionOf'> {
  admission: Admission
  /** Where the few lines go that every operator is to see. */
  notices: Logger
  parking: ParkingOptions
  journal: SessionJournal
  /** Whether the journal keeps what rides along in its writes. Default false. */
  oneWrite?: boolean
  /** As `GatewayStorage.atTurnsEnd`. */
  atTurnsEnd?: ((work: () => void) => void) | undefined
  /** Keeps a key before a session is created, when its journal cannot take it along. */
  keepKey?: ((key: KeptKey) => Promise<void>) | undefined
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  /** After that long without a turn or a client the engine of a session goes; `undefined`: never. */
  idleReleaseMs: number | undefined
  /** To be waited for before it is said that there is no such profile. @throws SG_ERR_STORE_UNAVAILABLE */
  profilesRefreshed(): Promise<void> | undefined
  /** What a profile says now, to show with a parked session. */
  profileInfo(name: string): ProfileInfo | undefined
  /** Sessions that are not terminal, those being built included. */
  maxSessions: number
  /** How long a terminal session stays listed; `undefined`: until DELETE. */
  sessionRetentionMs: number | undefined
  /** Told before a session is removed that a client closes. @throws what the storage throws; the session stays then */
  onClosing?: ((session: SessionInfo) => Promise<void>) | undefined
}

/** An AbortSignal, or what does as little as is needed of one. */
export type CallOff = Pick<AbortSignal, 'throwIfAborted'>

export interface CreateOptions {
  /** Whose request it is. Default: nobody's in particular, without limits. */
  principal?: Principal
  /** Name of who it is created for. Default: that of the principal. */
  createdBy?: string | undefined
  /** The job whose run it is: the session is then registered before its engine is built. */
  jobId?: string
  /** Default: a new one. */
  id?: string
  /** Calls the creation off while nothing is registered yet; a registered session is ended instead. */
  signal?: CallOff
  /** What is told of it: kept with its first write, and told then. Of a session that is registered before its engine is built. */
  told?: PlannedNotification | undefined
  /** The key that the request for it has taken: kept in the write that makes it. */
  takenKey?: TakenKey
  /** Its place among `maxSessions`, when one was reserved. */
  place?: Place | undefined
  /** The profile, when it was decided about earlier; the one that the request names is then not looked up. */
  profile?: ResolvedProfile
}
