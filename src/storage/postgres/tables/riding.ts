import { COUNTED, GREATEST } from '../../../usage/sums.js'
import { columnOf, type Riding, USAGE_KEY } from '../../sql/rows.js'
import type { Statement } from '../pipeline.js'
import { statement } from '../plan.js'
import { integerArray, textArray } from '../values.js'

/** Whose notifications and counts are, and jobs that wait for a node that goes on with them. */
export const NOBODY = 0

const THERE = '($1::text IS NULL OR EXISTS (SELECT FROM @sessions WHERE id = $1))'
/** @param values key, fingerprint, since, made and owner, in the statement @param when it is kept at all */
export const keepKey = (
  values: string,
  when: string,
): string => `INSERT INTO @idempotency_keys (key, fingerprint, since, made, owner)
  SELECT ${values} WHERE ${when}
  ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, since = excluded.since, made = excluded.made, answer = NULL,
    owner = excluded.owner`
const KEEP_KEY = keepKey('$2, $3, $4::double precision, $5, $6::bigint', THERE)
const KEEP_DELIVERIES = `INSERT INTO @deliveries (lane, id, delivery, owner) SELECT lane, id, delivery, $5::bigint
  FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS d (lane, id, delivery, place) WHERE ${THERE} ORDER BY place
  ON CONFLICT (lane, id) DO NOTHING`
const KEEP_NOTIFICATIONS = `INSERT INTO @notifications (n, type, session, profile, ts, notification)
  SELECT n, type, session, profile, ts::double precision, json
  FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS k (n, type, session, profile, ts, json)
  WHERE ${THERE}`
/**
 * Each gets its place while the feed is locked until the commit: who has read a place has read all before it, however the writes of several
 * processes overtake each other. Their numbers, which are given before the write and are part of what is told, could not do that.
 */
const KEEP_PLACED = `WITH given AS (
    SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY
      AS k (n, type, session, profile, ts, json, i)
    WHERE ${THERE}
  ), feed AS (
    UPDATE @feed SET last_number = greatest(last_number + (SELECT count(*) FROM given), (SELECT max(n) FROM given))
    RETURNING last_number
  )
  INSERT INTO @notifications (n, type, session, profile, ts, notification, place)
  SELECT n, type, session, profile, ts::double precision, json, last_number - (SELECT count(*) FROM given) + i FROM given, feed`
const ADD_USAGE = usageSql()

/**
 * @param me the member whose keys and deliveries they are
 * @param session kept only while it is there; null: in any case
 */
export function ridingStatements(
  { keys = [], deliveries = [], notifications = [], usage = [] }: Riding,
  me: number,
  session: string | null,
): Statement[] {
  const statements = keys.map(({ key, fingerprint, since, made }) =>
    statement(KEEP_KEY, session, key, fingerprint, since, made, me),
  )
  const column = <Item>(items: readonly Item[], value: (item: Item) => string) => textArray(items.map(value))
  if (deliveries.length > 0)
    statements.push(
      statement(
        KEEP_DELIVERIES,
        session,
        column(deliveries, ({ lane }) => lane),
        column(deliveries, ({ id }) => id),
        column(deliveries, ({ delivery }) => delivery),
        me,
      ),
    )
  if (notifications.length > 0)
    statements.push(
      statement(
        notifications[0]!.isPlacedWhenKept ? KEEP_PLACED : KEEP_NOTIFICATIONS,
        session,
        integerArray(notifications.map(({ number }) => number)),
        column(notifications, ({ type }) => type),
        column(notifications, ({ sessionId }) => sessionId),
        column(notifications, ({ profile }) => profile),
        column(notifications, ({ ts }) => String(ts)),
        column(notifications, ({ json }) => json),
      ),
    )
  for (const count of usage)
    statements.push(
      statement(
        ADD_USAGE,
        session,
        ...USAGE_KEY.map((name) => count[name]),
        ...COUNTED.map((name) => count[name] ?? 0),
      ),
    )
  return statements
}

function usageSql(): string {
  const columns = COUNTED.map(columnOf)
  const added = COUNTED.map((name) => {
    const column = columnOf(name)
    const [old, more] = [`u.${column}`, `excluded.${column}`]
    return `${column} = ${name === GREATEST ? `greatest(${old}, ${more})` : `${old} + ${more}`}`
  })
  const all = [...USAGE_KEY, ...columns]
  const given = all.map((_name, index) => `$${index + 2}${index < USAGE_KEY.length ? '' : '::double precision'}`)
  return `INSERT INTO @usage_sums AS u (${all.join(', ')}) SELECT ${given.join(', ')} WHERE ${THERE}
    ON CONFLICT (${USAGE_KEY.join(', ')}) DO UPDATE SET ${added.join(', ')}`
}
