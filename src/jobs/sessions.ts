import type { SessionEvent } from '../../schemas/events.js'
import type { CreateSessionRequest, SessionInfo } from '../../schemas/sessions.js'
import { hasCode } from '../errors.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { Place } from '../sessions/places.js'
import type { CallOff, Observed, RegistryEvents } from '../sessions/registry-options.js'

/** The part of the session registry that jobs run on. */
export interface JobSessions {
  /** Registers the session before its engine is built, under the id that is given; `signal` calls the creation off. */
  create(
    request: CreateSessionRequest,
    options: {
      id: string
      jobId: string
      signal: CallOff
      place: Place | undefined
      profile: ResolvedProfile
      createdBy?: string | undefined
      /** Kept with its first write, and told then. */
      told?: PlannedNotification | undefined
    },
  ): Promise<SessionInfo>
  /** Keeps a place for a session to be created in; undefined while there is none, until `room` is told. */
  reserve(): Place | undefined
  /** A session that this process has. */
  here(id: string): SessionInfo | undefined
  /** Whether every session that got an engine is known to the next process, too. */
  readonly outlast: boolean
  /** Whether an engine is at work in it. */
  serves(id: string): boolean
  /** Resolves when all that happened to it so far is durable and told, or it is gone; never rejects. */
  told(id: string): Promise<void>
  /** Those that have not ended. */
  unended(): SessionInfo[]
  /** Makes a session that has ended one that this process has, for a while. One that another node has is given as it was last written. */
  get(id: string): Promise<SessionInfo | undefined>
  /** What has happened to a session that this process has, after a place in its log. */
  eventsAfter(id: string, seq: number): Promise<SessionEvent[]>
  /** Interrupts the turn in progress, which tells why. */
  endTurn(id: string, why: string): Promise<void>
  /** Ends a session, which stays listed. */
  end(id: string): Promise<void>
  /** Ends a session and removes it, with everything it could be woken from. */
  close(id: string): Promise<unknown>
  follow<E extends keyof RegistryEvents & string>(
    event: E,
    listener: (payload: RegistryEvents[E]) => void,
    isFor?: (session: Observed) => boolean,
  ): () => void
}

/** For what comes of closing a session that may be gone already. @throws the error, if it says anything else */
export function unlessGone(error: unknown): void {
  if (!hasCode(error, 'SG_ERR_SESSION_NOT_FOUND')) throw error
}
