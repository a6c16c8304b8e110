import type { RunnerSnapshot, SessionRunnerConfig } from '../engines/runner.js'
import type { Session } from './session.js'
import type { CarriedDecision, ParkedSessionRecord } from './store.js'
import type { QueuedMessage } from './turns.js'

/**
 * The record to save of a session whose engine has just been taken out of service. It already holds the event that tells that the
 * session is parked, which the session appends once the record is durable.
 */
export function parkedRecord(
  session: Session,
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
    profile: profile.info.name,
    generation: profile.generation,
    config: keptConfig(session.request, facts.hostTitle),
    ...(facts.firstPrompt !== undefined && { firstPrompt: facts.firstPrompt }),
    ...(queued && { queued: [...queued] }),
    snapshot,
    executions: parked.executions,
    results: [],
    permissions: parked.permissions ?? [],
    decisions,
    hasNews: false,
    settled: executions.settled,
    log: { epoch: log.epoch, oldestSeq: log.oldestSeq, events: text === '' ? event : `${text}\n${event}` },
    parkedAt,
  }
}

/** What only the host sets is never written down; the title is the one that the session has by now. */
function keptConfig(request: SessionRunnerConfig, hostTitle: string | undefined): SessionRunnerConfig {
  const { env: _env, defaultApprovalTimeoutMs: _timeout, agentOptions: _options, title: _title, ...kept } = request
  return hostTitle === undefined ? kept : { ...kept, title: hostTitle }
}
