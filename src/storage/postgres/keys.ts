import { StorageError } from '../storage.js'
import type { Client } from './driver.js'
import { quoted, SCHEMA_VERSION } from './schema.js'

/** What is unique in each table, its primary key first. */
export const KEYS: Readonly<Record<string, readonly string[]>> = {
  schema_versions: ['version'],
  members: ['n'],
  leases: ['n'],
  takeovers: ['taker, victim'],
  versions_of: ['name'],
  sessions: ['key', 'id'],
  origins: ['session'],
  snapshots: ['session'],
  events: ['session, seq'],
  removed_sessions: ['session'],
  news: ['n', 'session, key'],
  parked: ['n', 'id'],
  profiles: ['name'],
  jobs: ['n', 'id'],
  daily_tokens: ['day'],
  idempotency_keys: ['key'],
  deliveries: ['n', 'lane, id'],
  delivery_attempts: ['n'],
  gone_targets: ['n', 'key'],
  notifications: ['n'],
  gateway_keys: ['name'],
  push_subscriptions: ['n', 'id'],
  sign_ins: ['n', 'id'],
  usage_sums: ['day, profile, agent, person'],
  executions: ['id'],
  carried: ['session, path, at'],
}

const FOUND = `SELECT relname AS "table", (SELECT string_agg(attname, ', ' ORDER BY place)
    FROM unnest(indkey) WITH ORDINALITY AS k (n, place) JOIN pg_attribute ON attrelid = indrelid AND attnum = k.n) AS columns
  FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND indisunique AND indisvalid AND indpred IS NULL`

/**
 * A restore adds keys last: one that broke off has left them out, and nothing can be written without them.
 * @returns what to do about it; undefined: none is missing
 */
export async function lackOfKeys(client: Client, schema: string, version: number): Promise<string | undefined> {
  // a newer version may have others
  if (version !== SCHEMA_VERSION) return
  const { rows } = await client.query(FOUND, [schema])
  const found = new Set((rows as { table: string; columns: string }[]).map((row) => `${row.table} ${row.columns}`))
  const missing = Object.entries(KEYS).flatMap(([table, keys]) =>
    keys.flatMap((columns, index) => {
      const kind = index === 0 ? 'PRIMARY KEY' : 'UNIQUE'
      return found.has(`${table} ${columns}`) ? [] : [`ALTER TABLE ${quoted(schema)}.${table} ADD ${kind} (${columns})`]
    }),
  )
  if (missing.length === 0) return
  return `the schema ${schema} lacks keys of its tables, as after a pg_restore that did not get through: restore the backup again (\`session-gateway backup\` says how), or ${missing.join('; ')}`
}

/** @throws StorageError for a schema in which every write would fail */
export async function assertKeys(client: Client, schema: string, version: number): Promise<void> {
  const lack = await lackOfKeys(client, schema, version)
  if (lack !== undefined)
    throw new StorageError('POSTGRES_KEYS_GONE', `${lack.replace(/^t/, 'T')}. It was left as it is.`)
}
