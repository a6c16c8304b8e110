export const isIn = (keys: string): string => `key IN (${keys})`

/** As an array they are looked up one by one: of a query the planner expects many, and reads every session for it. */
export const isOneOf = (keys: string): string => `key = ANY (ARRAY(${keys}))`

/**
 * What is not left to others: those that declare its profile, which this one does not. What a queue ran is left to those that have one. They
 * find it as what nobody has, when they see that its node is gone.
 */
export const hasNoOther = `(home = my_name OR profile <> ALL (ARRAY(
          SELECT unnest(profiles) FROM @members JOIN @leases USING (n)
          WHERE term >= 0 AND NOT draining AND until >= clock_timestamp()
            AND (slots > 0 OR (SELECT slots FROM @members WHERE n = me) = 0)
          EXCEPT SELECT unnest(profiles) FROM @members WHERE n = me
        )))`

/**
 * The step to schemas that several processes share: what each of them has; null: nobody of them.
 * @param raised codes of what functions raise
 * @param id the type of names
 */
export const clusterStep = (raised: { fenced: string; stale: string }, id: string): string => `
  ALTER TABLE @members ADD COLUMN name ${id}, ADD COLUMN url text, ADD COLUMN protocol integer, ADD COLUMN slots integer,
    ADD COLUMN config text, ADD COLUMN draining boolean NOT NULL DEFAULT false, ADD COLUMN backend bigint;
  -- beside members: a beat does not wait for what its node is writing
  CREATE TABLE @leases (n bigint PRIMARY KEY, until timestamptz NOT NULL) WITH (fillfactor = 50);
  ALTER TABLE @sessions ADD COLUMN owner bigint, ADD COLUMN home ${id}, ADD COLUMN status ${id};
  CREATE INDEX sessions_owned ON @sessions (owner, key) WHERE ended IS NULL;
  CREATE INDEX sessions_by_place ON @sessions (place);
  CREATE TABLE @executions (id ${id} PRIMARY KEY, session bigint NOT NULL);
  CREATE INDEX executions_by_session ON @executions (session);
  ALTER TABLE @jobs ADD COLUMN owner bigint;
  CREATE INDEX jobs_owned ON @jobs (owner) WHERE owner IS NOT NULL;
  ALTER TABLE @deliveries ADD COLUMN owner bigint;
  CREATE INDEX deliveries_owned ON @deliveries (owner, n);
  ALTER TABLE @idempotency_keys ADD COLUMN owner bigint;
  CREATE INDEX idempotency_keys_owned ON @idempotency_keys (owner) WHERE answer IS NULL;
  -- in which order they came to be read, where several processes write them; null: that of n
  ALTER TABLE @notifications ADD COLUMN place bigint;
  CREATE INDEX notifications_by_place ON @notifications ((coalesce(place, n)));
  ALTER TABLE @feed ADD COLUMN forgotten bigint NOT NULL DEFAULT 0;
  -- the oldest version that knows enough to go on with the schema as it is after the step; null: the one that has taken it
  ALTER TABLE @schema_versions ADD COLUMN usable_from integer;
  CREATE TABLE @versions_of (name ${id} PRIMARY KEY, version bigint NOT NULL);
  -- what was taken over and was not told yet in the process that took it; of nobody: victim 0
  CREATE TABLE @takeovers (taker bigint NOT NULL, victim bigint NOT NULL, taken text NOT NULL, PRIMARY KEY (taker, victim));

  -- As it was, and says whose it is: while it is queued or over, nobody's.
  CREATE FUNCTION @change_jobs_1(
    ids text[], revs bigint[], statuses text[], nexts text[], readies text[], ends text[], beginnings text[], infos text[], me bigint
  ) RETURNS void LANGUAGE plpgsql SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  DECLARE
    changed bigint;
  BEGIN
    UPDATE @jobs AS j SET rev = j.rev + 1, status = c.status, next_run_at = c.next_run_at::double precision,
      ready = c.ready::boolean, finished_at = c.finished_at::double precision, begins = c.begins::boolean, claim = NULL,
      claimed = NULL, info = c.info, owner = CASE WHEN c.status IN ('running', 'parked') THEN me END
    FROM unnest(ids, revs, statuses, nexts, readies, ends, beginnings, infos)
      AS c (id, rev, status, next_run_at, ready, finished_at, begins, info)
    WHERE j.id = c.id AND j.rev = c.rev;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed <> cardinality(ids) THEN
      RAISE EXCEPTION 'A job has changed.' USING ERRCODE = '${raised.stale}';
    END IF;
  END $$;

  ${takeOver(1, 'ended IS NULL', isIn, raised.fenced)}
`

/**
 * @param isAwake which sessions somebody has to work with
 * @param isAmong what a key is, if it is one of those that a query gives
 * @param fenced code of what it raises
 * @param isFor which of the sessions and jobs are for this one
 */
export const takeOver = (
  version: number,
  isAwake: string,
  isAmong: (keys: string) => string,
  fenced: string,
  isFor = 'true',
): string => `-- Makes all that a member had this one's, if the member has left, or is silent for longer than its lease; of no victim, what nobody has.
  -- Both are judged while nobody can change it: the lease, which a beat would renew, and what the victim is writing, which is waited for.
  CREATE FUNCTION @take_over_${version}(me bigint, my_victim bigint, is_known_dead boolean, guard_ms bigint, lock_ms bigint)
  RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    gone bigint[];
    my_name text;
    its_name text;
    has_left boolean;
    session_ids json;
    job_ids json;
    lanes json;
    keys json;
    result text;
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('session-gateway takes over ' || tableoid, 0)) FROM @members WHERE n = me;
    SELECT name INTO my_name FROM @members WHERE n = me AND term >= 0 FOR KEY SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'Another process has taken over.' USING ERRCODE = '${fenced}';
    END IF;
    IF my_victim IS NULL THEN
      gone := ARRAY(SELECT owner FROM (
        SELECT owner FROM @sessions WHERE ${isAwake} UNION SELECT owner FROM @jobs WHERE owner IS NOT NULL
        UNION SELECT owner FROM @deliveries UNION SELECT owner FROM @idempotency_keys WHERE answer IS NULL
      ) AS o WHERE owner IS NOT NULL AND NOT EXISTS (SELECT FROM @members WHERE n = o.owner));
    ELSE
      SELECT name, term < 0 INTO its_name, has_left FROM @members WHERE n = my_victim;
      IF NOT FOUND THEN
        RETURN NULL;
      END IF;
      DELETE FROM @leases WHERE n = my_victim AND (is_known_dead OR has_left OR (until < clock_timestamp()
        AND pg_postmaster_start_time() < clock_timestamp() - guard_ms * interval '1 millisecond'));
      IF NOT FOUND THEN
        RETURN NULL;
      END IF;
      PERFORM set_config('lock_timeout', lock_ms || 'ms', true);
      DELETE FROM @members WHERE n = my_victim;
      PERFORM set_config('lock_timeout', '0', true);
      gone := ARRAY[my_victim];
    END IF;
    WITH mine AS (
      UPDATE @sessions SET owner = me
      WHERE ${isAmong(`SELECT key FROM @sessions WHERE ${isAwake} UNION SELECT session FROM @news`)}
        AND (owner = ANY (gone) OR (my_victim IS NULL AND owner IS NULL AND (home IS NULL OR home = my_name)))
        AND ${isFor}
      RETURNING key, id
    ) SELECT coalesce(json_agg(id ORDER BY key), '[]') INTO session_ids FROM mine;
    WITH mine AS (
      UPDATE @jobs SET owner = me
      WHERE status IN ('running', 'parked') AND (owner = ANY (gone) OR (my_victim IS NULL AND owner IS NULL))
        AND ${isFor} RETURNING n, id
    ) SELECT coalesce(json_agg(id ORDER BY n), '[]') INTO job_ids FROM mine;
    WITH mine AS (
      UPDATE @deliveries SET owner = me WHERE owner = ANY (gone) OR (my_victim IS NULL AND owner IS NULL) RETURNING lane
    ) SELECT coalesce(json_agg(DISTINCT lane), '[]') INTO lanes FROM mine;
    -- their requests ended with their node, and had made nothing yet
    DELETE FROM @idempotency_keys
    WHERE answer IS NULL AND made IS NULL AND (owner = ANY (gone) OR (my_victim IS NULL AND owner IS NULL));
    WITH mine AS (
      UPDATE @idempotency_keys SET owner = me
      WHERE answer IS NULL AND (owner = ANY (gone) OR (my_victim IS NULL AND owner IS NULL)) RETURNING key
    ) SELECT coalesce(json_agg(key), '[]') INTO keys FROM mine;
    result := json_build_object('name', its_name, 'sessionIds', session_ids, 'jobIds', job_ids, 'lanes', lanes, 'keys', keys);
    INSERT INTO @takeovers (taker, victim, taken) VALUES (me, coalesce(my_victim, 0), result)
    ON CONFLICT (taker, victim) DO UPDATE SET taken = excluded.taken;
    RETURN result;
  END $$;`
