import type { DueSleeper, RestStatus } from '../../../sessions/kept/journal.js'
import { MAX_PAGE_CHARS, type SessionRow } from '../../sql/rows.js'
import { asks, type Plans, pageOf, rowsOf, statement } from '../plan.js'
import { textArray } from '../values.js'

const ENGINES = ['cli', 'provider']
const STATUSES = ['closed', 'failed', 'idle', 'parked']
/** Of a session `j`. */
const STAYS = `NOT EXISTS (SELECT FROM @news AS n WHERE n.session = j.key AND n.key = 'removal')`

/**
 * The newest of each engine and status, and of each profile: an index that begins with these gives them, however many others there are.
 * Rows are compared and ordered as a whole, as by equality the planner would take the index by place instead, and read all others on the way.
 */
const page = (columns: string, by: string, isOfProfiles: boolean): string => {
  const newest = (column: string) => {
    const indexed = [...(isOfProfiles ? ['j.profile'] : []), 'j.engine', `j.${column}`, 'j.place']
    const range = (place: string) => `(${isOfProfiles ? 'p.profile, ' : ''}e.engine, s.status, ${place})`
    return `(SELECT j.key, j.place FROM @sessions AS j
      WHERE j.${column} IS NOT NULL AND (${indexed}) < ${range('$3')} AND (${indexed}) >= ${range('0')} AND ${STAYS}
      ORDER BY ${indexed.map((one) => `${one} DESC`)} LIMIT $4)`
  }
  return `WITH found AS (
    SELECT x.key, x.place FROM unnest($1::text[]) AS e (engine) CROSS JOIN unnest($2::text[]) AS s (status) ${by} CROSS JOIN LATERAL (
      ${newest('ended')} UNION ALL ${newest('asleep')}
    ) AS x ORDER BY x.place DESC LIMIT $4
  ), measured AS (
    SELECT ${columns}, place, count(*) OVER () AS found,
      sum(octet_length(state)) OVER (ORDER BY place DESC) - octet_length(state) AS before
    FROM @sessions WHERE key = ANY (ARRAY(SELECT key FROM found))
  ) SELECT * FROM measured WHERE before < ${MAX_PAGE_CHARS} ORDER BY place DESC`
}
const ENDED = 'SELECT id, ended_at AS "endedAt" FROM @sessions AS s WHERE ended IS NOT NULL'
const FIRST = 'ORDER BY ended_at, key LIMIT $1'
const DUE =
  'SELECT id, wakes_at AS "wakesAt" FROM @sessions AS s WHERE wakes_at IS NOT NULL AND (wakes_at, id) > ($2, $3)'
const FIRST_DUE = 'ORDER BY wakes_at, id LIMIT $1'
/** Of this node, and of nobody who is there. */
const ofNode = (me: string) =>
  `AND (owner IS NULL OR owner = ${me} OR NOT EXISTS (SELECT FROM @members WHERE n = s.owner))`
const totals = (column: string) =>
  `SELECT ${column} AS status, count(*) AS count, max(place) AS last FROM @sessions WHERE ${column} IS NOT NULL GROUP BY ${column}`
const TOTALS = `${totals('ended')} UNION ALL ${totals('asleep')}`
const WITH_NEWS = `SELECT coalesce(ended, asleep) AS status, count(*) AS count FROM @sessions
  WHERE key IN (SELECT session FROM @news) AND (ended IS NOT NULL OR asleep IS NOT NULL) GROUP BY 1`
const OF_EXECUTION = 'SELECT s.id FROM @sessions AS s WHERE key = (SELECT session FROM @executions WHERE id = $1)'
const OF_SDK_SESSION = 'SELECT FROM @sessions WHERE sdk_session = $1 LIMIT 1'

/** Sessions at rest. @param columns of a row of `sessions` @param me the node that asks; null: one process has every session */
export function atRestPlans(columns: string, me: number | null) {
  const all = page(columns, '', false)
  const ofProfiles = page(columns, 'CROSS JOIN unnest($5::text[]) AS p (profile)', true)
  const [own, mine] = me === null ? [() => '', []] : [ofNode, [me]]
  const endedFirst = `${ENDED} ${own('$2')} ${FIRST}`
  const dueFirst = `${DUE} ${own('$4')} ${FIRST_DUE}`
  return {
    'journal.atRest'({ status, engine, profiles, before = Number.MAX_SAFE_INTEGER, limit }) {
      const values = [textArray(engine ? [engine] : ENGINES), textArray(status ? [status] : STATUSES), before, limit]
      const asked = profiles ? statement(ofProfiles, ...values, textArray(profiles)) : statement(all, ...values)
      return asks(asked, (rows) => pageOf<SessionRow & { place: number }>(rows, limit))
    },
    'journal.endedFirst': (limit) => rowsOf<{ id: string; endedAt: number }>(endedFirst, limit, ...mine),
    'journal.dueFirst': (limit, after) =>
      rowsOf<DueSleeper>(dueFirst, limit, after?.wakesAt ?? Number.MIN_SAFE_INTEGER, after?.id ?? '', ...mine),
    'journal.restTotals': () => ({
      statements: [statement(TOTALS), statement(WITH_NEWS)],
      onlyReads: true,
      result([rows, withNews]) {
        const found = { closed: 0, failed: 0, idle: 0, parked: 0, lastOrder: 0 }
        for (const { status, count, last } of rows!) {
          found[status as RestStatus] += count as number
          found.lastOrder = Math.max(found.lastOrder, last as number)
        }
        for (const { status, count } of withNews!) found[status as RestStatus] -= count as number
        return found
      },
    }),
    'journal.sessionOf': (executionId) =>
      asks(statement(OF_EXECUTION, executionId), ([row]) => row?.id as string | undefined),
    'journal.continues': (sdkSessionId) => asks(statement(OF_SDK_SESSION, sdkSessionId), (rows) => rows.length > 0),
  } satisfies Partial<Plans>
}
