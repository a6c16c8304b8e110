import type { KeptNotification } from '../../../notifications/store.js'
import type { Row } from '../pipeline.js'
import { asks, does, type Plans, rowsOf, statement } from '../plan.js'
import { textArray } from '../values.js'
import { NOBODY, ridingStatements } from './riding.js'

/** Where it is read: numbers and places are of one scale. */
const PLACE = 'coalesce(place, n)'
/** What was given once is known although it is forgotten. */
const OPEN = `WITH made AS (INSERT INTO @feed (epoch) SELECT $1 WHERE NOT EXISTS (SELECT FROM @feed) RETURNING epoch, last_number)
  SELECT epoch, greatest(last_number, (SELECT coalesce(max(${PLACE}), 0) FROM @notifications)) AS last
  FROM (SELECT epoch, last_number FROM @feed UNION ALL SELECT epoch, last_number FROM made) AS feed`
const REMEMBER_LAST = `UPDATE @feed SET last_number = greatest(last_number, (SELECT coalesce(max(${PLACE}), 0) FROM @notifications))`
const LAST_OF_COUNT = `(SELECT ${PLACE} FROM @notifications ORDER BY ${PLACE} DESC OFFSET $1 LIMIT 1)`
/** Some of them, those that are first by what they are found by. */
const forgets = (which: string, by: string) => `WITH gone AS (
    DELETE FROM @notifications WHERE n = ANY (ARRAY(SELECT n FROM @notifications WHERE ${which} ORDER BY ${by} LIMIT $2))
    RETURNING ${PLACE} AS number
  ), told AS (UPDATE @feed SET forgotten = greatest(forgotten, (SELECT coalesce(max(number), 0) FROM gone)))
  SELECT count(*) = $2::bigint AS more FROM gone`

const read = (order: 'ASC' | 'DESC'): string => `SELECT number, type, session AS "sessionId", profile, ts, json FROM (
    SELECT number, type, session, profile, ts, notification AS json,
      sum(octet_length(notification)) OVER (ORDER BY number ${order}) AS bytes, row_number() OVER (ORDER BY number ${order}) AS i
    FROM (
      SELECT *, ${PLACE} AS number FROM @notifications WHERE ${PLACE} > $1 AND ${PLACE} <= $2 AND ts >= $3
        AND ($4::text[] IS NULL OR type = ANY ($4)) AND ($5::text[] IS NULL OR profile = ANY ($5))
      ORDER BY ${PLACE} ${order} LIMIT $6
    ) AS wanted
  ) AS measured WHERE i = 1 OR bytes <= $7 ORDER BY number`
const FIRST = read('ASC')
const NEWEST = read('DESC')

const isAnyMore = (results: readonly Row[][]): boolean => results.slice(1).some(([row]) => row!.more as boolean)

/** The feed of notifications. */
export const notificationPlans = {
  'notifications.open': (epoch) => ({
    statements: [statement(OPEN, epoch)],
    result: ([rows]) => ({ epoch: rows![0]!.epoch as string, lastNumber: rows![0]!.last as number }),
  }),
  'notifications.add': (kept) => does(...ridingStatements({ notifications: [kept] }, NOBODY, null)),
  'notifications.read': ({ after, until, since, types, profiles }, { limit, maxBytes, newest }) =>
    rowsOf<KeptNotification>(
      newest ? NEWEST : FIRST,
      ...[after, until, since, types ? textArray(types) : null, profiles ? textArray(profiles) : null, limit, maxBytes],
    ),
  'notifications.oldest': (since) =>
    asks(
      statement('SELECT min(coalesce(place, n)) AS number FROM @notifications WHERE ts >= $1', since),
      ([row]) => (row!.number as number | null) ?? undefined,
    ),
  'notifications.prune': (through, before, limit) => ({
    statements: [
      statement(REMEMBER_LAST),
      statement(forgets(`${PLACE} <= $1`, PLACE), through, limit),
      statement(forgets('ts < $1', 'ts'), before, limit),
    ],
    result: isAnyMore,
  }),
  'notifications.placeOf': (number) =>
    asks(
      statement(`SELECT forgotten, (SELECT ${PLACE} FROM @notifications WHERE n = $1) AS place FROM @feed`, number),
      ([row]) => ({
        place: (row?.place as number | null | undefined) ?? undefined,
        forgotten: Number(row?.forgotten ?? 0),
      }),
    ),
  'notifications.keepNewest': (count, limit) => ({
    statements: [statement(REMEMBER_LAST), statement(forgets(`${PLACE} <= ${LAST_OF_COUNT}`, PLACE), count, limit)],
    result: isAnyMore,
  }),
} satisfies Partial<Plans>
