import type { PlaceRow } from '../operations.js'
import type { Row } from '../pipeline.js'
import { asks, type Plans, statement } from '../plan.js'
import { textArray } from '../values.js'
import type { KnownSession } from './sessions.js'

const NODE = 'm.n, m.name, m.url, m.protocol, m.version, m.slots, m.config, m.draining'
const MEMBER = 'LEFT JOIN @members AS m ON m.n = owner AND m.term >= 0'
const PLACE = `SELECT s.id, s.profile, s.home, s.ended, ${NODE} FROM @sessions AS s ${MEMBER}`
const OF_SESSION = `${PLACE} WHERE s.id = $1`
const OF_EXECUTION = `${PLACE} WHERE s.key = (SELECT session FROM @executions WHERE id = $1)`
const OF_JOB = `SELECT j.id, j.profile, NULL AS home, NULL AS ended, ${NODE} FROM @jobs AS j ${MEMBER} WHERE j.id = $1`
/** Of two that claim it, the second sees in its next statement that the first one has it. */
const HOLD = 'SELECT FROM @sessions WHERE id = $1 FOR NO KEY UPDATE'
const CLAIM = `UPDATE @sessions AS s SET owner = $2
  WHERE id = $1 AND (owner IS NULL OR NOT EXISTS (SELECT FROM @members WHERE n = s.owner))`
const HAS_LEFT = 'SELECT FROM @sessions JOIN @members ON n = owner WHERE id = $1 AND term < 0'
const RELEASE = 'UPDATE @sessions SET owner = NULL WHERE id = ANY ($1::text[]) AND owner = $2'

const placeIn = ([row]: Row[]): PlaceRow | undefined => row as unknown as PlaceRow | undefined

/**
 * Where things are of several nodes.
 * @param onKnown told that what was known of a session is not to be relied on
 * @param me the member that asks
 */
export const placePlans = (onKnown: (id: string, known: KnownSession | undefined) => void, me: number) =>
  ({
    'cluster.placeOfSession': (id) => asks(statement(OF_SESSION, id), placeIn),
    'cluster.placeOfExecution': (executionId) => asks(statement(OF_EXECUTION, executionId), placeIn),
    'cluster.placeOfJob': (id) => asks(statement(OF_JOB, id), placeIn),
    'cluster.claim': (id) => ({
      statements: [statement(HOLD, id), statement(CLAIM, id, me), statement(OF_SESSION, id), statement(HAS_LEFT, id)],
      result(rows) {
        onKnown(id, undefined)
        return { place: placeIn(rows[2]!), hasLeft: rows[3]!.length > 0 }
      },
    }),
    'cluster.release': (ids) => ({
      statements: [statement(RELEASE, textArray(ids), me)],
      result: () => {
        for (const id of ids) onKnown(id, undefined)
      },
    }),
  }) satisfies Partial<Plans>
