import type { SessionClosedReason } from '../../../schemas/events.js'
import type { PendingExecution } from '../../../schemas/executions.js'
import type { PermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo, TokenUsage } from '../../../schemas/sessions.js'
import type { RunnerSnapshot, SessionRunnerConfig } from '../../engines/runner.js'
import type { AskedPlaces } from '../asks/waiting.js'
import type { CarriedDecision, CarriedResult, JournaledState, QueuedMessage } from './journal.js'

/** A parked session as it is kept: everything to go on under the same id, and nothing that only the host may know. */
export interface ParkedSessionRecord {
  id: string
  /** As shown while parked; `info.lastSeq` is where the numbering goes on. */
  info: SessionInfo
  /** As in `JournaledState`. */
  order?: number
  /** Name of the profile, and who it was: the session never wakes as someone else. */
  profile: string
  generation: string
  /** Without `env`, `defaultApprovalTimeoutMs` and `agentOptions`, which `buildRunnerConfig` gives again. */
  config: SessionRunnerConfig
  snapshot: RunnerSnapshot
  /** Executions that nobody has settled yet. */
  executions: PendingExecution[]
  /** Results that were accepted and that the engine may not have seen yet. */
  results: CarriedResult[]
  /** Permission requests that wait for an answer. */
  permissions: PermissionRequest[]
  /** Where these were made. */
  asked?: AskedPlaces
  /** Answers that were accepted and that the engine may not have seen yet. */
  decisions: CarriedDecision[]
  /** Whether anything came in since it was parked that the engine is to go on with. */
  hasNews: boolean
  /** Set when the turn is to end at the wake. */
  interrupted?: true
  /** Ids that were settled in this session's life, so that a late result is a duplicate and not unknown. */
  settled: string[]
  log: { epoch: string; oldestSeq: number; events: string }
  parkedAt: number
  /** What the title is made of when the host gave none. */
  firstPrompt?: string
  engineTitle?: string
  toldHistory?: JournaledState['toldHistory']
  /** What was chosen since the request; `config` has it already. */
  chosen?: JournaledState['chosen']
  before?: JournaledState['before']
  /** Name of who created it, and of who asked for its turn. */
  createdBy?: string
  askedBy?: string
  /** What the model calls of its turn have told, and what of that the snapshot knows. */
  turnUsage?: TokenUsage
  used?: TokenUsage
  /** It is to be removed, for this reason. */
  removal?: SessionClosedReason
  /** Messages that wait for the turn to end. */
  queued?: QueuedMessage[]
  /** Ids of the last accepted messages. */
  messageIds?: readonly string[]
  /** Its turn was over by then: what it waits for came of something that goes on beside its turns. */
  isBetweenTurns?: true
  /** The session had its engine when this was saved: events may have followed. */
  isHeld?: true
}

/** Where parked sessions are kept. Each method resolves when what it did is durable. */
export interface SessionStore {
  /** Adds or replaces the record of this id, whole or not at all. */
  save(record: ParkedSessionRecord): Promise<void>
  get(id: string): Promise<ParkedSessionRecord | undefined>
  /** @param onUnreadable told of each record that is there and cannot be read; it is left in place */
  list(onUnreadable?: (error: Error) => void): Promise<ParkedSessionRecord[]>
  /** Does nothing when there is none. */
  delete(id: string): Promise<void>
  /** Lets go of what the store holds, at the gateway's end. */
  close?(): Promise<void>
}
