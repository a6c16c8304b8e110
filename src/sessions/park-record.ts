import type { SessionInfo } from '../../schemas/sessions.js'
import type { RunnerSnapshot } from '../engines/runner.js'
import { keptConfig, withChoice } from './journaled-state.js'
import type { SessionState } from './session-state.js'
import type { CarriedDecision, ParkedSessionRecord } from './store.js'
import type { QueuedMessage } from './turns.js'

/**
 * The record to save of a session whose engine has just been taken out of service. It already holds the event that tells that the
 * session is parked, which the session appends once the record is durable.
 */
export function parkedRecord(
  session: SessionState,
  snapshot: RunnerSnapshot,
  { queued, decisions }: { queued: readonly QueuedMessage[] | undefined; decisions: CarriedDecision[] },
  parkedAt: number,
): ParkedSessionRecord {
  const { id, log, facts, profile, executions } = session
  const text = log.toText()
  const event = log.previewText({ type: 'status_changed', status: 'parked' }, parkedAt)
  const parked = session.parkedInfo(parkedAt)
  return {
    id,
    info: {
      ...session.info(),
      status: 'parked',
      parked,
      lastSeq: log.lastSeq + 1,
      lastActivityAt: parkedAt,
      attachedClients: 0,
    },
    ...(session.order !== undefined && { order: session.order }),
    profile: profile.info.name,
    generation: profile.generation,
    config: keptConfig(withChoice(session), facts.hostTitle),
    ...(facts.firstPrompt !== undefined && { firstPrompt: facts.firstPrompt }),
    ...(facts.engineTitle !== undefined && { engineTitle: facts.engineTitle }),
    ...(queued && { queued: [...queued] }),
    ...(session.messageIds && { messageIds: session.messageIds }),
    ...(facts.before && { before: facts.before }),
    ...(session.chosen && { chosen: session.chosen }),
    snapshot,
    executions: parked.executions,
    results: [],
    permissions: parked.permissions ?? [],
    decisions,
    hasNews: false,
    settled: executions.settled,
    // a journal has them already
    log: {
      epoch: log.epoch,
      oldestSeq: log.oldestSeq,
      events: log.isJournaled ? '' : text === '' ? event : `${text}\n${event}`,
    },
    parkedAt,
  }
}

/** What is shown of a session that is parked; where its numbering goes on may be far above the newest event that its log has. */
export function shownInfo({ info, log }: ParkedSessionRecord): SessionInfo {
  const newest = log.events.slice(log.events.lastIndexOf('\n') + 1)
  return newest === '' ? info : { ...info, lastSeq: JSON.parse(newest).seq }
}
