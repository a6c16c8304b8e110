import type { KeptNotification } from '../../../notifications/store.js'
import { asks, does, type Plans, sets, statement } from '../plan.js'
import { textArray } from '../values.js'
import { ridingStatements } from './riding.js'

/** What was given once is known although it is forgotten. */
const OPEN = `WITH made AS (INSERT INTO @feed (epoch) SELECT $1 WHERE NOT EXISTS (SELECT FROM @feed) RETURNING epoch, last_number)
  SELECT epoch, greatest(last_number, (SELECT coalesce(max(n), 0) FROM @notifications)) AS last
  FROM (SELECT epoch, last_number FROM @feed UNION ALL SELECT epoch, last_number FROM made) AS feed`
const REMEMBER_LAST = `UPDATE @feed SET last_number = greatest(last_number, (SELECT coalesce(max(n), 0) FROM @notifications))`

const read = (
  order: 'ASC' | 'DESC',
): string => `SELECT n AS number, type, session AS "sessionId", profile, ts, json FROM (
    SELECT n, type, session, profile, ts, notification AS json,
      sum(octet_length(notification)) OVER (ORDER BY n ${order}) AS bytes, row_number() OVER (ORDER BY n ${order}) AS place
    FROM (
      SELECT * FROM @notifications WHERE n > $1 AND n <= $2 AND ts >= $3
        AND ($4::text[] IS NULL OR type = ANY ($4)) AND ($5::text[] IS NULL OR profile = ANY ($5))
      ORDER BY n ${order} LIMIT $6
    ) AS wanted
  ) AS measured WHERE place = 1 OR bytes <= $7 ORDER BY n`
const FIRST = read('ASC')
const NEWEST = read('DESC')

/** The feed of notifications. */
export const notificationPlans = {
  'notifications.open': (epoch) => ({
    statements: [statement(OPEN, epoch)],
    writes: true,
    result: ([rows]) => ({ epoch: rows![0]!.epoch as string, lastNumber: rows![0]!.last as number }),
  }),
  'notifications.add': (kept) => does(...ridingStatements({ notifications: [kept] }, null)),
  'notifications.read': ({ after, until, since, types, profiles }, { limit, maxBytes, newest }) =>
    asks(
      statement(
        newest ? NEWEST : FIRST,
        after,
        until,
        since,
        types ? textArray(types) : null,
        profiles ? textArray(profiles) : null,
        limit,
        maxBytes,
      ),
      (rows) => rows as unknown as KeptNotification[],
    ),
  'notifications.oldest': (since) =>
    asks(
      statement('SELECT min(n) AS number FROM @notifications WHERE ts >= $1', since),
      ([row]) => (row!.number as number | null) ?? undefined,
    ),
  'notifications.prune': (through, before) =>
    sets(
      statement(REMEMBER_LAST),
      statement('DELETE FROM @notifications WHERE n <= $1', through),
      statement('DELETE FROM @notifications WHERE ts < $1', before),
    ),
} satisfies Partial<Plans>
