import type { PendingExecution } from '../../../schemas/executions.js'
import type { AnsweredBy, PermissionRequest } from '../../../schemas/permissions.js'
import type { Engine, SessionInfo, SessionStatus, TokenUsage } from '../../../schemas/sessions.js'
import type { ExecutionResult, PermissionDecision, RunnerSnapshot, SessionRunnerConfig } from '../../engines/runner.js'
import type { KeptKey } from '../../idempotency/store.js'
import type { PlannedNotification } from '../../notifications/planned.js'
import type { KeptNotification } from '../../notifications/store.js'
import type { UsageCount } from '../../usage/store.js'
import type { KeptDelivery } from '../../webhooks/outbox.js'
import type { AskedPlaces } from '../asks/waiting.js'
import type { RunningTotals } from '../session-facts.js'
import type { Chosen } from './choice.js'
import type { News } from './news.js'
import type { DeliveredFile } from './snapshot-files.js'

/** An event as it is sent: its JSON, never serialised again. */
export interface JournaledEvent {
  seq: number
  json: string
}

/** An event as it is read back: its JSON, or that as UTF-8. */
export interface ReadEvent {
  seq: number
  json: string | Buffer
}

/** Events that were read back, rising. */
export interface ReadEvents extends Array<ReadEvent> {
  /** Whoever read them is done: their memory is given back, which would else wait for the garbage collector. They are empty then. */
  release?(): void
}

/** An answer that an engine may ask for again. */
export interface CarriedDecision {
  toolUseId: string
  requestId: string
  decision: PermissionDecision
  by?: AnsweredBy
  /** It allows something else than was shown. */
  isChanged?: boolean
  /** Whether the log has its `permission_resolved`. */
  told?: true
}

/** A result that an engine was handed, or is to be. */
export interface CarriedResult {
  executionId: string
  result: ExecutionResult
  /** Whether the log has its event. */
  told?: true
}

/**
 * The snapshot is from the middle of a turn, which an engine that is built from it goes on with. What came since is kept until the turn
 * is over: an engine that is built from the snapshot once more is handed it again.
 */
export interface MidTurn {
  /** Epoch milliseconds of the snapshot: since then the session is parked. */
  readonly since: number
  /** Ids of the executions and permission requests that the snapshot waits for. */
  readonly waits: readonly string[]
  /** What the calls of the turn that the snapshot knows of have told; absent in what earlier versions wrote. */
  readonly used?: TokenUsage
  readonly results: CarriedResult[]
  readonly decisions: CarriedDecision[]
  /** The turn is to end. */
  interrupted?: true
  /** It is to go on: an engine is at work on it, or is to be. */
  due?: true
  /** How many processes in a row ended soon after they had gone on with it at their start; absent: none. */
  endedSoon?: number
  /** The engine that gave the snapshot stayed: events may have followed that a journal of what is asleep does not have. */
  isHeld?: true
}

/** What a session was when it was created; never changes. */
export interface JournaledOrigin {
  profile: string
  generation: string
  /** Without `env`, `defaultApprovalTimeoutMs` and `agentOptions`, which `buildRunnerConfig` gives again. */
  config: SessionRunnerConfig
  /** Name of who created it. */
  createdBy?: string
  /** Identity of the session's log. */
  epoch: string
  /** Of a log that was in memory alone at first: the oldest event that it had by then. Absent: it has all. */
  oldestSeq?: number
}

/** A message that waits for the turns before it to end. */
export interface QueuedMessage {
  text: string
  commandId?: string
  /** Name of who sent it; absent: of who created the session. */
  askedBy?: string
}

/** What the next engine goes on from. */
export interface KeptSnapshot extends RunnerSnapshot {
  /**
   * Of a provider profile, between turns: the last event of the log that the engine can know of, and the messages that were told there by
   * then and not begun. No engine is given it.
   */
  logged?: { readonly throughSeq: number; readonly waiting?: readonly QueuedMessage[] }
}

/** Where a session stands: replaced as a whole with each write that changes it. */
export interface JournaledState {
  /** As shown, without clients. */
  info: SessionInfo
  /** Its place in the lists: of two sessions, the one created later has the greater one. Absent: of an earlier version. */
  order?: number
  /** The only node, by its name, on which an engine of it can start. Absent: any. */
  home?: string
  /** Set by the host or a rename; absent: the title is derived. */
  hostTitle?: string
  firstPrompt?: string
  engineTitle?: string
  /** What was said in the earlier session that it resumes is told. */
  toldHistory?: true
  /** A turn is in progress. */
  inTurn?: true
  /** Name of who asked for it, or for the last one. */
  askedBy?: string
  /** Messages that were accepted and that the engine was not given yet. */
  queued?: readonly QueuedMessage[]
  permissions?: readonly PermissionRequest[]
  /** Where these were made. */
  asked?: AskedPlaces
  executions?: readonly PendingExecution[]
  /** Ids of executions that were settled in this session's life. */
  settled?: readonly string[]
  chosen?: Chosen
  /** What engines came to that nothing was kept of. */
  before?: RunningTotals
  /** What the model calls of the turn in progress have told. */
  turnUsage?: TokenUsage
  /** The snapshot is from before the last turn, and the engine gives none: nothing can go on from it. */
  isStale?: true
  /** Files that were handed over and that no snapshot has. */
  delivered?: readonly DeliveredFile[]
  /** Ids of the last accepted messages, and other commands that are kept, so that a repeat is known. */
  messageIds?: readonly string[]
  /** Present from the park until the turn is over. */
  midTurn?: MidTurn
}

/** A log that is in memory: one event as JSON per line. */
export interface HeldLog {
  epoch: string
  oldestSeq: number
  events: string
}

/** What changed about one session: written as a whole or not at all. */
export interface JournalWrite {
  id: string
  /** With the first write of a session, and only then. */
  origin?: JournaledOrigin
  state?: JournaledState
  /** With a state that has an `order`: it sleeps from now on. A state without it: it does not. */
  asleep?: Asleep | undefined
  /** What the engine can go on from; replaces the earlier one. */
  snapshot?: KeptSnapshot
  /** In rising order of `seq`, above all that were written. */
  events?: readonly JournaledEvent[]
  /** Numbers up to this one may be used without telling; never lowered. */
  reservedSeq?: number
  /** Keys of the news that this write tells of: they are news no more. */
  taken?: readonly string[]
  /** The log, of a journal that keeps only what is asleep. */
  log?: HeldLog
  /** Of the request that created the session, with its first write: kept in the same write by the store that the journal belongs to. */
  keys?: readonly KeptKey[]
  /** What is to be delivered about `events`: kept in the same write in the outbox of the store that the journal belongs to. */
  deliveries?: readonly KeptDelivery[]
  /** What is told of `events`: kept in the same write by that store. */
  notifications?: readonly KeptNotification[]
  /** What `events` count for: added in the same write by that store. */
  usage?: readonly UsageCount[]
}

/**
 * Who asks for a removal may be refused. It is decided by a write that can be taken back, as the removal cannot, and then done whatever
 * becomes of this process.
 */
export interface RemovalDecision {
  news: News
  isRefused(): boolean
  /** @returns what is to be told of its end, kept in the same write */
  onDecided(): PlannedNotification | undefined
}

/** A session as a list shows it. */
export interface JournaledSession {
  id: string
  /** From a journal that numbers sessions with their first writes: rises, and is never given again. */
  position?: number
  profile: string
  generation: string
  state: JournaledState
  /** What no write has taken yet, in the order in which it came; absent when there is none. */
  news?: readonly News[]
  /** The numbering goes on above it. */
  reservedSeq: number
  /** Of its newest event; 0 when it has none. */
  lastSeq: number
  /** It is at rest, and sleeps. */
  sleeps?: true
}

/** Which sessions at rest are asked for. */
export interface AtRestQuery {
  status?: RestStatus | undefined
  engine?: Engine | undefined
  /** Absent: of all. */
  profiles?: readonly string[] | undefined
  /** Only those that come after this place in the lists, which begin with the newest. */
  before?: number | undefined
  limit: number
}

/** Which sessions of all nodes are asked for. */
export interface ListedQuery extends Omit<AtRestQuery, 'status'> {
  status?: SessionStatus | undefined
}

/** A session of any node. */
export interface ListedSession extends JournaledSession {
  /** In the lists. */
  place: number
  /** The node that has it, which may be gone; absent: none. */
  owner?: number
}

export type EndedStatus = 'closed' | 'failed'
export type RestStatus = EndedStatus | Asleep['status']

/** A session that sleeps, and by what it is found: nobody has to work with it until somebody asks for it or its time has come. */
export interface Asleep {
  status: 'idle' | 'parked'
  /** Epoch milliseconds of the first deadline of what it waits for; absent: it has none. */
  wakesAt?: number | undefined
  /** Of the agent's own session that it goes on from. */
  sdkSessionId?: string | undefined
}

/** A sleeping session whose time comes. */
export interface DueSleeper {
  id: string
  wakesAt: number
}

/**
 * What a journal gives of sessions at rest, so that none of them is in memory that nobody asks for: those that have ended, from the first
 * write on whose state says so, and those that sleep, from a write with `asleep` until the next one with a state.
 */
export interface SessionsAtRest {
  /** As `list`, of those that somebody has to work with: they are not at rest, or have news. */
  awake(onUnreadable?: (error: Error) => void): Promise<JournaledSession[]>
  /**
   * Those at rest, the greatest `order` first, or of those that have none the greatest `position`; without those whose removal is among
   * their news, and without what cannot be read. It may end before `limit`: `next` is the `before` of the next page, and absent when
   * there is none.
   */
  atRest(
    query: AtRestQuery,
    onUnreadable?: (error: Error) => void,
  ): Promise<{ sessions: JournaledSession[]; next: number | undefined }>
  /** Those that were the first to end, by their `lastActivityAt`. */
  endedFirst(limit: number): Promise<{ id: string; endedAt: number }[]>
  /** Those that sleep and wake by themselves, the first one first; of one time by their ids. @param after only those behind it */
  dueFirst(limit: number, after?: DueSleeper): Promise<DueSleeper[]>
  /** How many are at rest and have no news, by their status, and the greatest order among all at rest; 0 when there are none. */
  restTotals(): Promise<Record<RestStatus, number> & { lastOrder: number }>
  /** The session that has had an execution of that id, at rest or not: of several the first. */
  sessionOf(executionId: string): Promise<string | undefined>
  /** Whether a session that sleeps goes on from that session of an agent's own. */
  continues(sdkSessionId: string): Promise<boolean>
}

/** Everything that a session goes on from. */
export interface JournaledWhole extends JournaledSession, JournaledOrigin {
  snapshot?: KeptSnapshot
  log?: HeldLog
}

/**
 * Shows a journal that a session is the caller's to write: of two that ever had it, the one with the greater term has it now. Where one
 * process has them all, it is `SOLE_OWNER`.
 */
export interface Fence {
  readonly term: number
}
export const SOLE_OWNER: Fence = { term: 0 }

/**
 * Where sessions are kept with their events and their news, so that all of it outlives the process. `sessionJournalConformance` says what
 * each method does. What was asked for in one turn of the event loop is done in that order. Of `SessionsAtRest` it has all or nothing:
 * without them `list` is asked at the start, and every session is in memory.
 */
export interface SessionJournal extends Partial<SessionsAtRest> {
  /**
   * It has sessions only while they sleep: they are written whole, with their `log`, when they fall asleep, and removed when their turn
   * is over. Absent: it has every session, from its first event on.
   */
  readonly onlyAsleep?: true
  /** Resolves when it is durable. Rejects when nothing of it was written; the caller may write it again. */
  write(write: JournalWrite, fence?: Fence): Promise<void>
  /**
   * Keeps news of a session, whoever owns it, together or not at all; of a key that is there already the first stays. Resolves when it is
   * durable: false when there is no such session.
   * @param keys of the requests that brought them: kept in the same write, as `JournalWrite.keys`
   */
  deposit(id: string, news: readonly News[], keys?: readonly KeptKey[]): Promise<boolean>
  /** Every session, in the order of their first writes. @param onUnreadable told of each one that is there and cannot be read */
  list(onUnreadable?: (error: Error) => void): Promise<JournaledSession[]>
  /**
   * All sessions of all nodes, ended or not, the greatest place first; without those whose removal is among their news, and without what
   * cannot be read. It may end before `limit`: `next` is the `before` of the next page, and absent when there is none. Only of a storage
   * with `cluster`, once it is announced.
   */
  listed?(
    query: ListedQuery,
    onUnreadable?: (error: Error) => void,
  ): Promise<{ sessions: ListedSession[]; next: number | undefined }>
  /** @throws StorageError `STORAGE_UNREADABLE` when it is there and cannot be read */
  get(id: string): Promise<JournaledWhole | undefined>
  /**
   * The next events with `afterSeq < seq <= untilSeq`, rising: about `maxBytes` of JSON, but at least one when there is one.
   * Empty for a session that is not there.
   */
  read(id: string, afterSeq: number, untilSeq: number, maxBytes: number): Promise<ReadEvents>
  /**
   * Removes the session with its events and its news; does nothing when it is not there. Resolves when it is durable.
   * @param deliveries what is to be delivered about its end: kept in the same write
   * @param notifications what is told of its end: the same
   * @param usage what its last events count for: the same
   */
  remove(
    id: string,
    deliveries?: readonly KeptDelivery[],
    notifications?: readonly KeptNotification[],
    fence?: Fence,
    usage?: readonly UsageCount[],
  ): Promise<void>
  /** Lets go of what it holds, at the gateway's end. */
  close?(): Promise<void>
}

export const isTerminal = ({ status }: Pick<SessionInfo, 'status'>): boolean =>
  status === 'failed' || status === 'closed'

/** Where a session stands in the lists; of a version that wrote no order down: as it was first written, or by time. */
export const orderOf = ({ state: { order, info }, position }: Pick<JournaledSession, 'state' | 'position'>): number =>
  order ?? position ?? info.createdAt

/** Ids of the executions that a session has had; what nobody settled is taken as settled, as cut off. */
export const executionsOf = ({ settled = [], executions = [] }: JournaledState): string[] => [
  ...new Set([...settled, ...executions.map(({ executionId }) => executionId)]),
]
