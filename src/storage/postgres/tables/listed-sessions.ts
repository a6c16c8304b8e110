import type { ListedQuery } from '../../../sessions/kept/journal.js'
import { type ListedColumns, MAX_PAGE_CHARS, type SessionRow, type SessionWrite } from '../../sql/rows.js'
import type { ListedRow } from '../operations.js'
import type { Statement } from '../pipeline.js'
import { asks, type Plan, pageOf, statement } from '../plan.js'
import { integerArray, textArray } from '../values.js'

const LIST = `UPDATE @sessions SET owner = coalesce($2::bigint, owner), status = $3, engine = $4, place = coalesce($5::bigint, key), home = $6
  WHERE id = $1`
/** An id that another session has stays that one's, unless that is on its way out. */
const ADD_EXECUTIONS = `INSERT INTO @executions AS e (id, session) SELECT x.id, s.key FROM @sessions AS s, unnest($2::text[]) AS x (id)
  WHERE s.id = $1 ON CONFLICT (id) DO UPDATE SET session = excluded.session
    WHERE EXISTS (SELECT FROM @news AS n WHERE n.session = e.session AND n.key = 'removal')`
/** What a list leaves out: who removed it was told so. */
const IS_LISTED = "NOT EXISTS (SELECT FROM @news AS n WHERE n.session = s.key AND n.key = 'removal')"
const OF_ALL = `SELECT key FROM @sessions AS s WHERE place < $1 AND ${IS_LISTED} ORDER BY place DESC LIMIT $2`

/**
 * The latest of each profile and engine that there are, from an index that begins with both, and of these the latest: few among very many
 * are found as soon as many. Rows are compared and ordered as a whole, as by equality the planner would take the index by place instead.
 * @param rest what that index has between the engine and the place, and what that has to be
 */
const latest = (rest: { column: string; value: string; where: string } | undefined): string => {
  const columns = ['s.profile', 's.engine', ...(rest ? [rest.column] : []), 's.place']
  const range = (place: string) => `(kind.profile, kind.engine, ${rest ? `${rest.value}, ` : ''}${place})`
  return `(SELECT key, place FROM @sessions AS s
    WHERE (${columns}) < ${range('$1')} AND (${columns}) >= ${range('0')} ${rest ? `AND ${rest.where}` : ''} AND ${IS_LISTED}
    ORDER BY ${columns.map((column) => `${column} DESC`)} LIMIT $2)`
}
const ofKinds = (of: string): string => `SELECT key FROM (
    WITH RECURSIVE kinds AS (
      (SELECT profile, engine FROM @sessions ORDER BY profile, engine LIMIT 1)
      UNION ALL SELECT after.* FROM kinds, LATERAL (
        SELECT profile, engine FROM @sessions AS s WHERE (s.profile, s.engine) > (kinds.profile, kinds.engine)
        ORDER BY profile, engine LIMIT 1
      ) AS after
    ) SELECT * FROM kinds WHERE ($3::text[] IS NULL OR profile = ANY ($3)) AND ($4::text IS NULL OR engine = $4)
  ) AS kind, LATERAL (${of}) AS found ORDER BY place DESC LIMIT $2`
const OF_KIND = ofKinds(latest(undefined))
const OF_STATUS = ofKinds(
  [
    { column: 's.status', value: '$5::text', where: 's.ended IS NULL' },
    { column: 's.ended', value: '$5::text', where: 's.ended IS NOT NULL' },
  ]
    .map(latest)
    .join(' UNION ALL '),
)

const page = (columns: string, keys: string): string => `WITH found AS MATERIALIZED (${keys}), measured AS (
    SELECT ${columns}, place, owner, home, count(*) OVER () AS found,
      sum(octet_length(state)) OVER (ORDER BY place DESC, key) - octet_length(state) AS before
    FROM @sessions WHERE key = ANY (ARRAY(SELECT key FROM found))
  ) SELECT * FROM measured WHERE before < ${MAX_PAGE_CHARS} ORDER BY place DESC, key`
/** What was written while one process had everything says nothing of it in columns. */
const UNLISTED = 'SELECT key, id, state FROM @sessions WHERE status IS NULL AND key > $1 ORDER BY key LIMIT $2'
const LIST_ALL = `UPDATE @sessions AS s SET status = x.status, engine = x.engine, place = coalesce(s.place, x.place, s.key), home = x.home
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]::bigint[], $5::text[]) AS x (key, status, engine, place, home)
  WHERE s.key = x.key AND s.status IS NULL`
const ADD_ALL_EXECUTIONS = `INSERT INTO @executions (id, session) SELECT * FROM unnest($1::text[], $2::bigint[])
  ON CONFLICT (id) DO NOTHING`

/** What the row of a session says by which it is found. */
export interface KnownListing {
  text: string
  executions: ReadonlySet<string>
}

/**
 * What a write changes of that.
 * @param known undefined: nobody knows what the row says
 */
export function listed(
  { id, origin, listed: columns, executions = [] }: SessionWrite,
  known: KnownListing | undefined,
  me: number | null,
): { statements: Statement[]; after: KnownListing | undefined } {
  if (!columns) return { statements: [], after: known }
  const { status, engine, place, home } = columns
  const text = JSON.stringify([status, engine, place, home])
  const added = executions.filter((one) => !known?.executions.has(one))
  return {
    statements: [
      ...(text === known?.text ? [] : [statement(LIST, id, origin ? me : null, status, engine, place, home)]),
      ...(added.length === 0 ? [] : [statement(ADD_EXECUTIONS, id, textArray(added))]),
    ],
    after: { text, executions: added.length === 0 && known ? known.executions : new Set(executions) },
  }
}

/** All sessions, whoever has them. @param columns of a row of `sessions` */
export function listedPlan(
  columns: string,
  { before = Number.MAX_SAFE_INTEGER, profiles, status, engine, limit }: ListedQuery,
): Plan<{ rows: ListedRow[]; isLast: boolean }> {
  const kind = [profiles ? textArray(profiles) : null, engine ?? null]
  const [keys, values] =
    status !== undefined ? [OF_STATUS, [...kind, status]] : profiles || engine ? [OF_KIND, kind] : [OF_ALL, []]
  return asks(statement(page(columns, keys), before, limit, ...values), (rows) => pageOf<ListedRow>(rows, limit))
}

export const unlistedAsked = (afterKey: number, limit: number): Statement => statement(UNLISTED, afterKey, limit)

/** Sets it of many that were written without. */
export function listAll(
  rows: readonly (Pick<SessionRow, 'key'> & { columns: ListedColumns; executions: readonly string[] })[],
): Statement[] {
  const texts = (value: (columns: ListedColumns) => string | null) =>
    textArray(rows.map(({ columns }) => value(columns)))
  const ofAll = rows.flatMap(({ key, executions }) => executions.map((id) => ({ id, key })))
  return [
    statement(
      LIST_ALL,
      integerArray(rows.map(({ key }) => key)),
      texts(({ status }) => status),
      texts(({ engine }) => engine),
      texts(({ place }) => (place === null ? null : String(place))),
      texts(({ home }) => home),
    ),
    statement(ADD_ALL_EXECUTIONS, textArray(ofAll.map(({ id }) => id)), integerArray(ofAll.map(({ key }) => key))),
  ]
}
