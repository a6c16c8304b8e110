import { REMEMBERED_MS } from '../../../idempotency/store.js'
import { ATTEMPTS_PER_LANE, MAX_ATTEMPTS, MAX_GONE } from '../../../webhooks/outbox.js'
import type { SharedName } from '../../sql/operations.js'
import {
  type DeliveryRow,
  KEYS_SWEPT_AT_ONCE,
  type KeptKeyRow,
  type KnownKeyRow,
  type ParkedRow,
  PROBE_BYTES,
} from '../../sql/rows.js'
import type { Row } from '../pipeline.js'
import { asks, does, type Plans, rowsOf, type Self, statement } from '../plan.js'
import { integerArray, isKept, textArray } from '../values.js'
import { keepKey, ridingStatements } from './riding.js'

const UPSERT_PARKED = `INSERT INTO @parked (id, record) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET record = excluded.record`
const UPSERT_PROFILE = `INSERT INTO @profiles (name, profile) VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET profile = excluded.profile`
const ADD_PROFILE = 'INSERT INTO @profiles (name, profile) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING name'
const REPLACE_PROFILE = 'UPDATE @profiles SET profile = $2 WHERE name = $1 AND profile = $3 RETURNING name'
const HAS_PROFILE = 'SELECT FROM @profiles WHERE name = $1 AND profile = $2'
const KEEP_PROFILE_KEY = keepKey('$3, $4, $5::double precision, $6, $7::bigint', `EXISTS (${HAS_PROFILE})`)
const UPSERT_SUBSCRIPTION = `INSERT INTO @push_subscriptions (id, subscription) VALUES ($1, $2)
  ON CONFLICT (id) DO UPDATE SET subscription = excluded.subscription`
const UPSERT_SIGN_IN = `INSERT INTO @sign_ins (id, sign_in) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET sign_in = excluded.sign_in`
const RENEW_SIGN_IN = 'UPDATE @sign_ins SET sign_in = $2 WHERE id = $1'
const BUMP = `INSERT INTO @versions_of AS v (name, version) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET version = v.version + 1`
const KEEP_GATEWAY_KEY = 'INSERT INTO @gateway_keys (name, value) VALUES ($1, $2) ON CONFLICT (name)'
const SWEEP_KEYS = `DELETE FROM @idempotency_keys
  WHERE key = ANY (ARRAY(SELECT key FROM @idempotency_keys WHERE since <= $1 ORDER BY since LIMIT ${KEYS_SWEPT_AT_ONCE}))`
const COMPLETE = `INSERT INTO @idempotency_keys (key, fingerprint, since, answer) VALUES ($1, $2, $3, $4)
  ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, since = excluded.since, answer = excluded.answer, made = NULL, owner = NULL`
const FIND_ANSWERED =
  'SELECT fingerprint, answer FROM @idempotency_keys WHERE key = $1 AND since > $2 AND answer IS NOT NULL'
const EXPIRE_KEY = 'DELETE FROM @idempotency_keys WHERE key = $1 AND since <= $2'
/** Of one that is taken the row is held, so that it is found afterwards: else it may be freed in between, and nobody has it. */
const TAKE_KEY = `INSERT INTO @idempotency_keys AS k (key, fingerprint, since, owner) VALUES ($1, $2, $3, $4)
  ON CONFLICT (key) DO UPDATE SET key = k.key WHERE false`
/** Not one that this process has taken itself: it knows of which request. */
const FIND_KEY = `SELECT fingerprint, answer FROM @idempotency_keys
  WHERE key = $1 AND (answer IS NOT NULL OR made IS NOT NULL OR owner IS DISTINCT FROM $2::bigint)`
const LEFT_KEYS = `SELECT key, fingerprint, made, since FROM @idempotency_keys
  WHERE answer IS NULL AND made IS NOT NULL AND ($1::bigint IS NULL OR owner = $1) AND ($2::text[] IS NULL OR key = ANY ($2))`
const DELIVERIES = `SELECT n, id, lane, delivery FROM @deliveries
  WHERE n > $1 AND ($2::bigint IS NULL OR owner = $2) ORDER BY n LIMIT $3`
/** By lane alone: without statistics the planner would read all that the owner has, to have them in order. */
const PLACES = `WITH found AS MATERIALIZED (SELECT n, owner FROM @deliveries WHERE lane = ANY ($2::text[]))
  SELECT n FROM found WHERE $1::bigint IS NULL OR owner = $1 ORDER BY n`
const DELIVERIES_AT = `SELECT n, id, lane, delivery FROM @deliveries
  WHERE n = ANY ($2::bigint[]) AND ($1::bigint IS NULL OR owner = $1) ORDER BY n`
/**
 * Not by all that this one has in the lane: what was made may still be kept, and comes before what others have told since. What was taken
 * over may be this one's already, and nobody told of it.
 */
const IS_HELD_UP = `SELECT EXISTS (SELECT FROM @deliveries WHERE lane = $1 AND owner <> $2::bigint AND ${isKept('delivery', false)}
  AND n < coalesce((SELECT min(n) FROM @deliveries WHERE lane = $1 AND owner = $2 AND id = ANY ($3::text[])), ${2n ** 63n - 1n}))
  OR EXISTS (SELECT FROM @takeovers WHERE taker = $2) AS held`
const TRIM_LANE = `DELETE FROM @delivery_attempts WHERE lane = $1 AND n <=
  (SELECT n FROM @delivery_attempts WHERE lane = $1 ORDER BY n DESC OFFSET ${ATTEMPTS_PER_LANE} LIMIT 1)`
const TRIM_ATTEMPTS = `DELETE FROM @delivery_attempts WHERE n <= (SELECT max(n) FROM @delivery_attempts) - ${MAX_ATTEMPTS}`
/** One that another process is at is left to that one. One that is damaged stays, and holds up nothing. */
const PRUNE_ATTEMPTS = `WITH seen AS MATERIALIZED (
    SELECT n, lane, substring(attempt FROM '"at":([0-9]{1,16})')::double precision < $2 AS old
    FROM @delivery_attempts WHERE n > $1 ORDER BY n LIMIT $3
  ), mine AS MATERIALIZED (
    SELECT n FROM @delivery_attempts WHERE n = ANY (ARRAY(SELECT n FROM seen WHERE old AND strpos(lane, ' ') > 0))
    ORDER BY n FOR UPDATE SKIP LOCKED
  ), gone AS (DELETE FROM @delivery_attempts WHERE n = ANY (ARRAY(SELECT n FROM mine)))
  SELECT n, old IS NOT FALSE AS "isOld" FROM seen ORDER BY n`
const TRIM_GONE = `DELETE FROM @gone_targets WHERE n <= (SELECT n FROM @gone_targets ORDER BY n DESC OFFSET ${MAX_GONE} LIMIT 1)`

const texts = (sql: string, column: string, ...values: string[]) =>
  asks(statement(sql, ...values), (rows) => rows.map((row) => row[column] as string))
const textOf = (sql: string, column: string, ...values: string[]) =>
  asks(statement(sql, ...values), ([row]) => row?.[column] as string | undefined)

/** Tells other processes that such rows are not as they were. */
const bump = (name: SharedName) => statement(BUMP, name)

/** Parked sessions as they were kept before the journal had them. */
export const parkedPlans = {
  'parked.save': (id, record) => does(statement(UPSERT_PARKED, id, record)),
  'parked.get': (id) => textOf('SELECT record FROM @parked WHERE id = $1', 'record', id),
  'parked.page': (after, limit) =>
    rowsOf<ParkedRow>('SELECT n, id, record FROM @parked WHERE n > $1 ORDER BY n LIMIT $2', after, limit),
  'parked.delete': (id) => does(statement('DELETE FROM @parked WHERE id = $1', id)),
} satisfies Partial<Plans>

/** Managed profiles. @param me whose keys are kept with them */
export const profilePlans = (me: number) =>
  ({
    'profiles.list': () =>
      rowsOf<{ name: string; profile: string }>('SELECT name, profile FROM @profiles ORDER BY name'),
    'profiles.save': (name, profile, key) =>
      does(
        statement(UPSERT_PROFILE, name, profile),
        bump('profiles'),
        ...ridingStatements({ keys: key && [key] }, me, null),
      ),
    'profiles.saveInstead'(name, profile, before, key) {
      const save =
        before === null ? statement(ADD_PROFILE, name, profile) : statement(REPLACE_PROFILE, name, profile, before)
      const keep = key && statement(KEEP_PROFILE_KEY, name, profile, key.key, key.fingerprint, key.since, key.made, me)
      return {
        statements: [save, bump('profiles'), ...(keep ? [keep] : [])],
        again: [statement(HAS_PROFILE, name, profile)],
        result: ([saved]) => saved!.length > 0,
      }
    },
    'profiles.delete': (name) => does(statement('DELETE FROM @profiles WHERE name = $1', name), bump('profiles')),
  }) satisfies Partial<Plans>

/** Answers by key. */
export const idempotencyPlans = ({ n: me, isOneOfMany }: Self) =>
  ({
    'idempotency.begin'(key, fingerprint, now) {
      const limit = now - REMEMBERED_MS
      const found = (rows: readonly Row[]) => rows[0] as unknown as KnownKeyRow | undefined
      if (!isOneOfMany) return asks(statement(FIND_ANSWERED, key, limit), found)
      const find = statement(FIND_KEY, key, me)
      return {
        // done again it takes what was somebody else's then and is free by now: who is told that it is free has it
        statements: [statement(EXPIRE_KEY, key, limit), statement(TAKE_KEY, key, fingerprint, now, me), find],
        result: (rows) => found(rows.at(-1)!),
      }
    },
    'idempotency.complete': (key, fingerprint, since, answer, now) =>
      does(statement(SWEEP_KEYS, now - REMEMBERED_MS), statement(COMPLETE, key, fingerprint, since, answer)),
    'idempotency.release': (key) => does(statement('DELETE FROM @idempotency_keys WHERE key = $1', key)),
    'idempotency.keep': (row) => does(...ridingStatements({ keys: [row] }, me, null)),
    'idempotency.left': (keys) => rowsOf<KeptKeyRow>(LEFT_KEYS, isOneOfMany ? me : null, keys ? textArray(keys) : null),
  }) satisfies Partial<Plans>

/** Deliveries that wait, and the attempts that were made. */
export const outboxPlans = ({ n: me, isOneOfMany }: Self) =>
  ({
    'outbox.add': (delivery) => does(...ridingStatements({ deliveries: [delivery] }, me, null)),
    'outbox.change': ({ lane, id, delivery }) =>
      does(statement('UPDATE @deliveries SET delivery = $3 WHERE lane = $1 AND id = $2', lane, id, delivery)),
    'outbox.remove': (lane, id) => does(statement('DELETE FROM @deliveries WHERE lane = $1 AND id = $2', lane, id)),
    'outbox.page': (after, limit) => rowsOf<DeliveryRow>(DELIVERIES, after, isOneOfMany ? me : null, limit),
    'outbox.places': (lanes) =>
      asks(statement(PLACES, isOneOfMany ? me : null, textArray(lanes)), (rows) => rows.map(({ n }) => n as number)),
    'outbox.at': (places) => rowsOf<DeliveryRow>(DELIVERIES_AT, isOneOfMany ? me : null, integerArray(places)),
    'outbox.isHeldUp': (lane, ids) =>
      asks(statement(IS_HELD_UP, lane, me, textArray(ids)), ([row]) => row!.held as boolean),
    'outbox.log': (lane, attempt) =>
      does(
        statement('INSERT INTO @delivery_attempts (lane, attempt) VALUES ($1, $2)', lane, attempt),
        statement(TRIM_LANE, lane),
        statement(TRIM_ATTEMPTS),
      ),
    'outbox.attempts': (lane) =>
      texts('SELECT attempt FROM @delivery_attempts WHERE lane = $1 ORDER BY n DESC', 'attempt', lane),
    'outbox.forget': (lane) =>
      does(
        statement('DELETE FROM @delivery_attempts WHERE lane = $1', lane),
        statement('DELETE FROM @gone_targets WHERE key = $1', lane),
      ),
    'outbox.prune': (after, before, limit) => ({
      statements: [statement(PRUNE_ATTEMPTS, after, before, limit)],
      result: ([rows]) => rows as unknown as { n: number; isOld: boolean }[],
    }),
    'outbox.rememberGone': (key) =>
      does(
        statement('INSERT INTO @gone_targets (key) VALUES ($1) ON CONFLICT (key) DO NOTHING', key),
        statement(TRIM_GONE),
      ),
    'outbox.gone': () => texts('SELECT key FROM @gone_targets ORDER BY n', 'key'),
  }) satisfies Partial<Plans>

/** Keys of the gateway's own, and browsers that subscribed. */
export const channelPlans = {
  'channels.keyOnce': (name, value) => ({
    statements: [
      statement(`${KEEP_GATEWAY_KEY} DO NOTHING`, name, value),
      statement('SELECT value FROM @gateway_keys WHERE name = $1', name),
    ],
    result: (rows) => rows[1]![0]!.value as string,
  }),
  'channels.key': (name) => textOf('SELECT value FROM @gateway_keys WHERE name = $1', 'value', name),
  'channels.saveKey': (name, value) =>
    does(statement(`${KEEP_GATEWAY_KEY} DO UPDATE SET value = excluded.value`, name, value)),
  'channels.subscriptions': () =>
    rowsOf<{ id: string; subscription: string }>('SELECT id, subscription FROM @push_subscriptions ORDER BY n'),
  'channels.saveSubscription': (id, subscription) =>
    does(statement(UPSERT_SUBSCRIPTION, id, subscription), bump('push_subscriptions')),
  'channels.removeSubscription': (id) =>
    does(statement('DELETE FROM @push_subscriptions WHERE id = $1', id), bump('push_subscriptions')),
} satisfies Partial<Plans>

/** Browsers that are signed in to the console. */
export const signInPlans = {
  'signIns.list': () =>
    rowsOf<{ id: string; signIn: string }>('SELECT id, sign_in AS "signIn" FROM @sign_ins ORDER BY n'),
  'signIns.save': (id, signIn) => does(statement(UPSERT_SIGN_IN, id, signIn), bump('sign_ins')),
  'signIns.renew': (id, signIn) => does(statement(RENEW_SIGN_IN, id, signIn), bump('sign_ins')),
  'signIns.remove': (id) => does(statement('DELETE FROM @sign_ins WHERE id = $1', id), bump('sign_ins')),
} satisfies Partial<Plans>

export const versionPlans = {
  'versions.of': (name) =>
    asks(statement('SELECT version FROM @versions_of WHERE name = $1', name), ([row]) => Number(row?.version ?? 0)),
} satisfies Partial<Plans>

/** Shows whether there is room for something new: what is written is taken away again. */
export const probePlans = {
  'probe.write': () =>
    does(
      statement('CREATE TABLE IF NOT EXISTS @probe (filler text)'),
      statement("INSERT INTO @probe (filler) VALUES (repeat('x', $1::integer))", PROBE_BYTES),
    ),
  'probe.clear': () => does(statement('DROP TABLE IF EXISTS @probe')),
} satisfies Partial<Plans>
