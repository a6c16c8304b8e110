import type { RunnerSnapshot } from '../../engines/runner.js'
import { keptConfig, withChoice } from '../session-facts.js'
import type { SessionState } from '../session-state.js'
import { inSnapshot } from './choice.js'
import type { JournalWrite, MidTurn } from './journal.js'
import { originOf, stateOf } from './record.js'

/** What a turn waits for whose engine is about to be missed. */
export function midTurnAt({ executions, permissions, facts }: SessionState, since: number): MidTurn {
  const waits = [...executions.list().map(({ executionId }) => executionId), ...permissions.list().map(({ id }) => id)]
  return { since, waits, used: facts.usedBySnapshot, results: [], decisions: permissions.carried }
}

/**
 * A session whose engine is gone, whole, for a journal that has only what sleeps.
 * @param snapshot of its engine
 * @param parksAt it is about to be parked, and the event that tells it is in the log already
 * @param isHeld its engine stays
 */
export function asleep(
  session: SessionState,
  snapshot: RunnerSnapshot,
  parksAt?: number,
  isHeld = false,
): JournalWrite {
  const { id, log, facts } = session
  const chosen = inSnapshot(session.chosen)
  const state = { ...stateOf(session), ...(chosen && { chosen }) }
  const write = { id, snapshot, state, reservedSeq: log.lastSeq }
  const events = log.toText()
  if (parksAt === undefined) return { ...write, log: { epoch: log.epoch, oldestSeq: log.oldestSeq, events } }
  const told = log.previewText({ type: 'status_changed', status: 'parked' }, parksAt)
  const config = keptConfig(withChoice(session), facts.hostTitle)
  const parked = session.parkedInfo(parksAt)
  return {
    ...write,
    origin: { ...originOf(session), config },
    state: {
      ...{ ...state, midTurn: { ...midTurnAt(session, parksAt), ...(isHeld && { isHeld }) } },
      info: { ...state.info, status: 'parked', parked, lastActivityAt: parksAt },
    },
    reservedSeq: log.lastSeq + 1,
    log: { epoch: log.epoch, oldestSeq: log.oldestSeq, events: events === '' ? told : `${events}\n${told}` },
  }
}
