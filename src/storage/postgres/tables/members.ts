import type { ClusterNode } from '../../cluster.js'
import type { Neighbour } from '../membership.js'

/** Who joins looks who is there one after the other. */
export const JOIN_IN_TURN = `SELECT pg_advisory_xact_lock(hashtextextended('session-gateway joins ' || oid, 0)) FROM pg_namespace WHERE nspname = $1`
/** Of one name, with the lease of each as it is. */
export const NAMESAKES = `SELECT n, name, url, host, pid, started_at AS "startedAt", version, until::text AS until
  FROM @members JOIN @leases USING (n) WHERE name = $1 AND term >= 0 AND until >= clock_timestamp()`
/** Unless another one of its name is alive. @param $11 members that are known to be gone */
export const INSERT = `WITH mine AS (
    INSERT INTO @members (host, pid, started_at, version, name, url, protocol, slots, config, profiles)
    SELECT $1, $2::bigint, $3::double precision, $4, $5, $6, $7::integer, $8::integer, $9, $12::text[]
    WHERE NOT EXISTS (SELECT FROM @members JOIN @leases USING (n)
      WHERE name = $5 AND term >= 0 AND until >= clock_timestamp() AND n <> ALL ($11::bigint[]))
    RETURNING n
  ), lease AS (
    INSERT INTO @leases (n, until) SELECT n, clock_timestamp() + $10 * interval '1 millisecond' FROM mine
  ) SELECT n FROM mine`
/** Of single processes that ended without leaving. */
export const DELETE_SINGLE = 'DELETE FROM @members WHERE name IS NULL'
/** Of a write whose loss in a crash costs nothing: then the server has just started, and nobody is declared dead. */
export const ASYNC = `SELECT set_config('synchronous_commit', 'off', true)`
export const BEAT = `UPDATE @leases SET until = clock_timestamp() + $2 * interval '1 millisecond' WHERE n = $1 RETURNING n`
export const LEAVE = 'UPDATE @members SET term = -1, draining = true WHERE n = $1'
export const END_LEASE = `UPDATE @leases SET until = '-infinity' WHERE n = $1`
export const DRAIN = 'UPDATE @members SET draining = true WHERE n = $1'

/** Those that are alive. @param me who is, whatever the row said when it was read */
export const livingOf = (me: number, neighbours: readonly Neighbour[]): ClusterNode[] =>
  neighbours
    .filter(({ n, hasLeft, isExpired }) => n === me || (!hasLeft && !isExpired))
    .map(({ n, name, url, protocol, version, slots, config, draining, profiles }) => ({
      ...{ n, name, url, protocol, version, slots, config, draining },
      profiles: JSON.parse(profiles ?? '[]') as string[],
    }))
