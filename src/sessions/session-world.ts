import type { SessionClosedReason, SessionEventBody } from '../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { DeferredExecution, SessionRunnerConfig } from '../engines/runner.js'
import type { Executions } from '../executions/executions.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { Standstill } from '../lib/standstill.js'
import type { PlannedOnce } from '../notifications/planned.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { AnswerBearing } from './asks/permissions.js'
import type { JournaledWhole } from './kept/journal.js'
import type { Keeping } from './kept/keeping.js'
import type { EventLogLimits } from './log/event-log.js'
import type { OperatorLog } from './operator-log.js'
import type { Sharing } from './sharing.js'

/**
 * A session, to those whom it only names itself to: they are given the `Session`, and know what it is; the world of a session need not.
 */
interface SessionRef {
  readonly id: string
}

/** What all sessions of a gateway share. */
export interface SessionWorld {
  readonly clock: Clock
  readonly logger: Logger
  readonly eventLog: EventLogLimits
  readonly maxSocketsPerSession: number
  readonly requireApiKey: boolean
  readonly disableBypassPermissions: boolean
  readonly operatorLog: OperatorLog
  readonly observer: {
    /** After an event took effect; must not throw. */
    onEvent(session: SessionRef, body: SessionEventBody, seq: number, ts: number): void
    /** The run of a job waits as a parked one does, with its engine. */
    onHeld(session: SessionRef): void
  }
  /** Once, when the session became terminal. */
  onEnded(session: SessionRef): void
  readonly dispatcher: {
    /** An execution was deferred; whoever does its work is to be told once that is durable. Must not throw. */
    plan(sessionId: string, execution: DeferredExecution): PlannedOnce
    /** A session was removed: nobody is to begin with its work. */
    withdraw(sessionId: string): void
  }
  readonly executions: Executions
  readonly keeping: Keeping
  readonly sleep: SessionSleep
  /** Absent: one process has all sessions. */
  readonly sharing?: Sharing | undefined
  /**
   * After the write of an execution: the session that the storage finds by its id, of two that write one at once the first; undefined:
   * whoever has one is in memory. @throws what the storage throws
   */
  sessionOf(executionId: string): Promise<string | undefined>
  /** Whether anything may be done now; absent: always. */
  readonly standstill?: Standstill | undefined
}

/** What a session leaves to whoever puts sessions to sleep and wakes them. */
export interface SessionSleep {
  /** Something changed that may let the engine of this session go. */
  consider(session: SessionRef): void
  /** The engine of this session is gone although the session goes on. */
  onSpent(session: SessionRef): void
  /** The turn of a session is over: what it could go on from in the middle of it is not needed any more. */
  checkpoint(session: SessionRef): void
  /** Gives a session without an engine one again; resolves when it takes commands. @throws why it could not */
  rouse(session: SessionRef): Promise<void>
  /** Resolves when this session is not about to be parked. */
  unfrozen(session: SessionRef): Promise<void>
  /** Answers a permission request of a session that no engine serves. */
  answer(
    session: SessionRef,
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing?: AnswerBearing,
  ): Promise<void>
  /** Ends the turn of a parked session. */
  interrupt(session: SessionRef): Promise<void>
  /** Closes and removes a session that no engine serves. */
  remove(id: string, reason: SessionClosedReason): Promise<unknown>
}

export interface SessionInit {
  id: string
  profile: ResolvedProfile
  /** The request after defaults: what a later start is made from again. */
  request: SessionRunnerConfig
  /** What `buildRunnerConfig` made of it. */
  config: SessionRunnerConfig
  jobId?: string | undefined
  /** Name of who creates it. */
  createdBy?: string | undefined
  /** Of the request that creates it. */
  key?: KeptKey | undefined
  /** Name of the only node on which its engine can start, of a new one. */
  home?: string | undefined
}

/** A session as it was left. */
export interface LeftSession {
  whole: JournaledWhole
  /** Where its numbering goes on. */
  lastSeq: number
}
