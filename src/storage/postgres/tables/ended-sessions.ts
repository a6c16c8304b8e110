import type { EndedExecutionsRow, SessionRow } from '../../sql/rows.js'
import { asks, type Plans, statement } from '../plan.js'
import { textArray } from '../values.js'

const MAX_PAGE_CHARS = 1024 * 1024
const ENGINES = ['cli', 'provider']
const STATUSES = ['closed', 'failed']
/** Of a session `j`. */
const STAYS = `NOT EXISTS (SELECT FROM @news AS n WHERE n.session = j.key AND n.key = 'removal')`

/** Of each engine and status, and of each profile, the newest: an index gives them however many others there are. */
const page = (columns: string, by: string, of: string): string => `WITH found AS (
    SELECT x.key, x.place FROM unnest($1::text[]) AS e (engine) CROSS JOIN unnest($2::text[]) AS s (status) ${by} CROSS JOIN LATERAL (
      SELECT j.key, j.place FROM @sessions AS j WHERE ${of} j.engine = e.engine AND j.ended = s.status AND j.place < $3
        AND ${STAYS}
      ORDER BY j.place DESC LIMIT $4
    ) AS x ORDER BY x.place DESC LIMIT $4
  ), measured AS (
    SELECT ${columns}, place, count(*) OVER () AS found,
      sum(octet_length(state)) OVER (ORDER BY place DESC) - octet_length(state) AS before
    FROM @sessions WHERE key = ANY (ARRAY(SELECT key FROM found))
  ) SELECT * FROM measured WHERE before < ${MAX_PAGE_CHARS} ORDER BY place DESC`
const FIRST = `SELECT id, ended_at AS "endedAt" FROM @sessions WHERE ended IS NOT NULL ORDER BY ended_at, key LIMIT $1`
/** Of this node, and of nobody who is there. */
const FIRST_OF_NODE = `SELECT id, ended_at AS "endedAt" FROM @sessions AS s WHERE ended IS NOT NULL
  AND (owner IS NULL OR owner = $2 OR NOT EXISTS (SELECT FROM @members WHERE n = s.owner)) ORDER BY ended_at, key LIMIT $1`
const TOTALS = `SELECT count(*) - (
    SELECT count(DISTINCT n.session) FROM @news AS n JOIN @sessions AS s ON s.key = n.session WHERE s.ended IS NOT NULL
  ) AS count, coalesce(max(place), 0) AS "lastOrder" FROM @sessions WHERE ended IS NOT NULL`
const EXECUTIONS = `SELECT key, id, executions FROM @sessions AS j WHERE executions IS NOT NULL AND key > $1 AND ${STAYS}
  ORDER BY key LIMIT $2`

/** Sessions that have ended. @param columns of a row of `sessions` @param me the node that asks; null: one process has every session */
export function endedPlans(columns: string, me: number | null) {
  const all = page(columns, '', '')
  const ofProfiles = page(columns, 'CROSS JOIN unnest($5::text[]) AS p (profile)', 'j.profile = p.profile AND')
  return {
    'journal.ended'({ status, engine, profiles, before = Number.MAX_SAFE_INTEGER, limit }) {
      const values = [textArray(engine ? [engine] : ENGINES), textArray(status ? [status] : STATUSES), before, limit]
      const asked = profiles ? statement(ofProfiles, ...values, textArray(profiles)) : statement(all, ...values)
      return asks(asked, (rows) => {
        const found = (rows[0]?.found as number | undefined) ?? 0
        return {
          rows: rows as unknown as (SessionRow & { place: number })[],
          isLast: rows.length === found && found < limit,
        }
      })
    },
    'journal.endedFirst': (limit) =>
      asks(
        me === null ? statement(FIRST, limit) : statement(FIRST_OF_NODE, limit, me),
        (rows) => rows as unknown as { id: string; endedAt: number }[],
      ),
    'journal.endedTotals': () =>
      asks(statement(TOTALS), ([row]) => row as unknown as { count: number; lastOrder: number }),
    'journal.endedExecutions': (afterKey, limit) =>
      asks(statement(EXECUTIONS, afterKey, limit), (rows) => rows as unknown as EndedExecutionsRow[]),
  } satisfies Partial<Plans>
}
