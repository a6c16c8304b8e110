import type { PendingExecution } from '../../schemas/executions.js'
import type { PermissionMode, PermissionRequest } from '../../schemas/permissions.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { RunnerSnapshot, SessionRunnerConfig } from '../engines/runner.js'
import type { KeptKey } from '../idempotency/store.js'
import type { KeptNotification } from '../notifications/store.js'
import type { KeptDelivery } from '../webhooks/outbox.js'
import type { RunningTotals } from './session-facts.js'
import type { QueuedMessage } from './turns.js'
import type { Accepted } from './write-ahead.js'

/** An event as it is sent: its JSON, never serialised again. */
export interface JournaledEvent {
  seq: number
  json: string
}

/** What a session was when it was created; never changes. */
export interface JournaledOrigin {
  profile: string
  generation: string
  /** Without `env`, `defaultApprovalTimeoutMs` and `agentOptions`, which `buildRunnerConfig` gives again. */
  config: SessionRunnerConfig
  /** Identity of the session's log. */
  epoch: string
}

/** Where a session stands: replaced as a whole with each write that changes it. */
export interface JournaledState {
  /** As shown, without clients; a session whose status is not terminal and not `parked` had an engine or could have one. */
  info: SessionInfo
  /** Its place in the lists: of two sessions, the one created later has the greater one. Absent: of an earlier version. */
  order?: number
  /** Set by the host or a rename; absent: the title is derived. */
  hostTitle?: string
  firstPrompt?: string
  engineTitle?: string
  /** A turn is in progress. */
  inTurn?: true
  /** Messages that were accepted and that the engine was not given yet. */
  queued?: readonly QueuedMessage[]
  permissions?: readonly PermissionRequest[]
  executions?: readonly PendingExecution[]
  /** Ids of executions that were settled in this session's life. */
  settled?: readonly string[]
  /** What was chosen since the request; a model of `null` is the default one. */
  chosen?: { model?: string | null; permissionMode?: PermissionMode }
  /** What engines came to that nothing was kept of. */
  before?: RunningTotals
  /** The snapshot is from before the last turn, and the engine gives none: nothing can go on from it. */
  isStale?: true
  /** Ids of the last accepted messages, so that a repeat is known. */
  messageIds?: readonly string[]
  /** What is about to be done, in this order: whoever reads it does it first. */
  ahead?: readonly Accepted[]
}

/** What changed about one session: written as a whole or not at all. */
export interface JournalWrite {
  id: string
  /** With the first write of a session, and only then. */
  origin?: JournaledOrigin
  state?: JournaledState
  /** What the engine can go on from; replaces the earlier one. */
  snapshot?: RunnerSnapshot
  /** In rising order of `seq`, above all that were written. */
  events?: readonly JournaledEvent[]
  /** Numbers up to this one may be used without telling; never lowered. */
  reservedSeq?: number
  /** Of the requests that asked for what is written: kept in the same write by the store that the journal belongs to. */
  keys?: readonly KeptKey[]
  /** What is to be delivered about `events`: kept in the same write in the outbox of the store that the journal belongs to. */
  deliveries?: readonly KeptDelivery[]
  /** What is told of `events`: kept in the same write by that store. */
  notifications?: readonly KeptNotification[]
}

/** A session as a list shows it. */
export interface JournaledSession {
  id: string
  /** From `list` of a journal that numbers sessions with their first writes: rises, and is never given again. */
  position?: number
  profile: string
  generation: string
  state: JournaledState
  /** The numbering goes on above it. */
  reservedSeq: number
  /** Of its newest event; 0 when it has none. */
  lastSeq: number
}

/** Everything that a session goes on from. */
export interface JournaledWhole extends JournaledSession, JournaledOrigin {
  snapshot?: RunnerSnapshot
}

/**
 * Where sessions are kept with their events, so that both outlive the process. `eventJournalConformance` says what each method does.
 * What was asked for in one turn of the event loop is done in that order.
 */
export interface EventJournal {
  /** Resolves when it is durable. Rejects when nothing of it was written; the caller may write it again. */
  write(write: JournalWrite): Promise<void>
  /** Every session, in the order of their first writes. @param onUnreadable told of each one that is there and cannot be read */
  list(onUnreadable?: (error: Error) => void): Promise<JournaledSession[]>
  get(id: string): Promise<JournaledWhole | undefined>
  /**
   * The next events with `afterSeq < seq <= untilSeq`, rising: about `maxBytes` of JSON, but at least one when there is one.
   * Empty for a session that is not there.
   */
  read(id: string, afterSeq: number, untilSeq: number, maxBytes: number): Promise<JournaledEvent[]>
  /**
   * Removes the session and its events; does nothing when it is not there. Resolves when it is durable.
   * @param deliveries what is to be delivered about its end: kept in the same write
   * @param notifications what is told of its end: the same
   */
  remove(id: string, deliveries?: readonly KeptDelivery[], notifications?: readonly KeptNotification[]): Promise<void>
}
