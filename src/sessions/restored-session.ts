import type { PendingExecution } from '../../schemas/executions.js'
import type { PermissionRequest } from '../../schemas/permissions.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { RunnerSnapshot } from '../engines/runner.js'
import type { JournaledState, JournaledWhole } from './journal.js'
import { infoOf, type SessionEntry } from './session-table.js'
import type { SessionInit } from './session-world.js'
import type { ParkedSessionRecord } from './store.js'
import type { QueuedMessage } from './turns.js'

/** A session as it was left in a store, whichever. */
export interface RestoredSession {
  info: SessionInfo
  firstPrompt: string | undefined
  engineTitle: string | undefined
  permissions: readonly PermissionRequest[]
  executions: readonly PendingExecution[]
  settled: readonly string[]
  queued: readonly QueuedMessage[] | undefined
  inTurn: boolean
  chosen: JournaledState['chosen']
  messageIds: readonly string[] | undefined
  before: JournaledState['before']
  /** What was accepted, and can only be done once an engine serves it. */
  ahead: JournaledState['ahead']
  snapshot: RunnerSnapshot | undefined
  /** `undefined`: it is not parked. */
  parkedAt: number | undefined
  /** The log itself, or the place in the journal where it goes on, and its newest event there. */
  log: ParkedSessionRecord['log'] | { epoch: string; lastSeq: number; heldSeq: number }
}

/** @param entry says where the numbering goes on, when the journal has the log */
export function fromRecord(record: ParkedSessionRecord, entry: SessionEntry | undefined): RestoredSession {
  const { lastSeq } = entry ?? {}
  const { info, firstPrompt, engineTitle, permissions, executions, settled, queued, snapshot, parkedAt, log } = record
  return {
    ...{ info, firstPrompt, engineTitle, permissions, executions, settled, queued, snapshot, parkedAt },
    inTurn: true,
    chosen: record.chosen,
    messageIds: record.messageIds,
    before: record.before,
    ahead: record.ahead,
    log:
      lastSeq === undefined
        ? log
        : { epoch: log.epoch, lastSeq: Math.max(lastSeq, info.lastSeq), heldSeq: infoOf(entry!).lastSeq },
  }
}

/** @param lastSeq where the numbering goes on */
export function fromJournal(
  { state, snapshot, epoch, lastSeq: heldSeq }: JournaledWhole,
  lastSeq: number,
): RestoredSession {
  const { info, firstPrompt, engineTitle, permissions = [], executions = [], settled = [], queued } = state
  return {
    ...{ info, firstPrompt, engineTitle, permissions, executions, settled, queued },
    ...{ chosen: state.chosen, messageIds: state.messageIds, before: state.before },
    // whoever reads it does it first
    ahead: undefined,
    snapshot: state.isStale ? undefined : snapshot,
    inTurn: state.inTurn ?? false,
    parkedAt: undefined,
    log: { epoch, lastSeq, heldSeq },
  }
}

/** @param known what the profile says now; absent: it is gone */
export function initOf(
  {
    id,
    profile,
    generation,
    config,
    info,
  }: Pick<ParkedSessionRecord, 'id' | 'profile' | 'generation' | 'config' | 'info'>,
  known: ProfileInfo | undefined,
): SessionInit {
  const shown = known ?? { name: profile, engine: info.engine }
  return { id, request: config, config, jobId: info.jobId, profile: { info: shown, generation } }
}
