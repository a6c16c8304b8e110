import type { AnsweredBy, PermissionRequest, ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { ExecutionResult } from '../engines/runner.js'
import type { JournaledState } from './journal.js'
import { withChoice } from './journaled-state.js'
import { changedInput, decisionOf } from './permissions.js'
import type { ParkedSessionRecord } from './store.js'

/** A result has come for a session that has a record. */
export function takeInResult(record: ParkedSessionRecord, executionId: string, result: ExecutionResult): void {
  record.results.push({ executionId, result })
  record.settled.push(executionId)
  record.executions = record.executions.filter((pending) => pending.executionId !== executionId)
  record.hasNews = true
}

/** A request was answered of a session that has a record. */
export function takeInAnswer(
  record: ParkedSessionRecord,
  request: PermissionRequest,
  answer: ResolvePermissionRequest,
  by?: AnsweredBy,
): void {
  const { id: requestId, toolUseId } = request
  const decision = decisionOf(request, answer)
  const isChanged = changedInput(request, decision) !== undefined
  record.decisions.push({ toolUseId, requestId, decision, ...(by && { by }), ...(isChanged && { isChanged }) })
  record.permissions = record.permissions.filter(({ id }) => id !== requestId)
  record.hasNews = true
}

/**
 * Brings a record up to date of a session that had an engine when the process ended: what the log has is not told again, and what was
 * accepted meanwhile is not lost.
 */
export function catchUp(record: ParkedSessionRecord, state: JournaledState): void {
  const { settled = [], permissions = [], queued, messageIds, chosen, ahead } = state
  for (const result of record.results) if (settled.includes(result.executionId)) result.told = true
  for (const decision of record.decisions)
    if (!permissions.some(({ id }) => id === decision.requestId)) decision.told = true
  record.config = withChoice({ request: record.config, chosen })
  Object.assign(record, { queued, messageIds, chosen, ahead })
  // carried out as soon as it goes on
  if (ahead?.some(({ type }) => type === 'close')) record.hasNews = true
}
