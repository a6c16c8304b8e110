import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import { StorageError } from '../storage.js'
import type { Client } from './driver.js'
import { holderOf, holdersIn, isGone, nameOf } from './holders.js'
import { assertKeys } from './keys.js'
import { inSchema, MIGRATIONS, quoted, SCHEMA_VERSION, type Step } from './schema.js'

/**
 * How far a schema has come; 0 when it is missing or empty.
 * @throws StorageError for one that is not ours, or that a newer version has written
 */
export async function versionOf(client: Client, schema: string, known = SCHEMA_VERSION): Promise<number> {
  const { rows } = await client.query(
    `SELECT count(*) FILTER (WHERE relname IN ('schema_versions', 'members')) AS ours, count(*) AS all
     FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relkind IN ('r', 'p', 'v')`,
    [schema],
  )
  const { ours, all } = rows[0] as { ours: string; all: string }
  if (Number(all) === 0) return 0
  if (Number(ours) < 2)
    throw new StorageError(
      'STORAGE_FOREIGN',
      `The schema ${schema} has tables of something else. It was left as it is; give the gateway a schema of its own.`,
    )
  const found = await client.query(inSchema('SELECT max(version) AS version FROM @schema_versions', schema))
  const { version } = found.rows[0] as { version: number }
  if (version > known) await assertUsable(client, schema, { version, known })
  return version
}

/** While a newer version takes over node by node, those of the one before go on, if what it has done to the schema lets them. */
async function assertUsable(client: Client, schema: string, { version, known }: { version: number; known: number }) {
  const { rows } = await client.query(
    inSchema('SELECT usable_from AS "usableFrom" FROM @schema_versions WHERE version = $1', schema),
    [version],
  )
  const { usableFrom = null } = rows[0] as { usableFrom?: number | null }
  const needed = usableFrom ?? version
  if (needed > known)
    throw new StorageError(
      'STORAGE_NEWER',
      `The schema ${schema} was written by a newer version: it is at version ${version} and needs a gateway that knows version ${needed}, ` +
        `this one knows versions up to ${known}. Use that version again, or restore a backup from before it. It was left as it is.`,
    )
}

/** @throws StorageError for a database that would refuse a prompt for a character in it */
async function assertTakesAnyText(client: Client): Promise<void> {
  const { rows } = await client.query("SELECT current_setting('server_encoding') AS encoding")
  const { encoding } = rows[0] as { encoding: string }
  if (encoding !== 'UTF8')
    throw new StorageError(
      'POSTGRES_ENCODING',
      `The database is encoded in ${encoding}, which has not every character: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name it in the url.`,
    )
}

/** A step that those of this version can go on with. */
const isFor = (version: number, step: Step): boolean => typeof step !== 'string' && step.usableFrom <= version

/**
 * What is about to be done to the schema would break whoever has it under way, and leave it no way back.
 * @throws StorageError while somebody has it
 */
async function assertNobodyHas(client: Client, schema: string, version: number): Promise<void> {
  const { rows } = await client.query(
    `SELECT pg_try_advisory_xact_lock(hashtextextended('session-gateway has ' || oid, 0)) AS "isFree" FROM pg_namespace WHERE nspname = $1`,
    [schema],
  )
  const { isFree } = rows[0] as { isFree: boolean }
  const left = (await holdersIn(client, schema, version)).filter((one) => !isGone(one))
  // a node whose connection broke has its lease; a single gateway has none, and is there by the lock
  const alive = left.filter(({ name, isAlive }) => isAlive || (!isFree && name === null))
  if (isFree && alive.length === 0) return
  const by = alive.map((one) => nameOf(holderOf(one))).join('; ') || 'a process that is just starting or ending'
  throw new StorageError(
    'STORAGE_HELD',
    `The schema ${schema} is in use by an older version (${by}), which cannot go on with it as this version makes it. ` +
      'Stop every gateway that uses it first. It was left as it is.',
  )
}

/**
 * Whoever asks for a table meanwhile waits as long. No shorter: an autovacuum, which may go on for hours, is ended for whoever has waited
 * for `deadlock_timeout`.
 */
const LOCK_WAIT = `SELECT set_config('lock_timeout', (setting::integer + 500)::text, true) FROM pg_settings WHERE name = 'deadlock_timeout'`
/** Who has a table for longer than that does not just read a row. */
const LONG_MS = 500
const RETRY: Backoff = { firstMs: 500, longestMs: 5_000 }
const PATIENCE_MS = 60_000
/** Of a lock that was not to be had in time. */
const LOCKED = '55P03'
const READERS = `SELECT DISTINCT pid, coalesce(nullif(application_name, ''), usename, backend_type) AS name FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE granted AND pid <> pg_backend_pid() AND xact_start < now() - $2 * interval '1 millisecond'
    AND relation IN (SELECT oid FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1))`

/**
 * Takes the steps that the schema has not taken yet, all of them or none; whoever else starts meanwhile waits. While somebody reads for
 * long, as `pg_dump` does, it is tried again and again: whoever waits for a table keeps those from it that run.
 * @throws StorageError while somebody uses it who could not go on with it afterwards, and when it was read for `patienceMs`
 */
export async function migrate(
  client: Client,
  schema: string,
  steps: readonly Step[] = MIGRATIONS,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const since = performance.now()
  for (let tries = 1; ; tries++)
    try {
      return await takeSteps(client, schema, steps)
    } catch (error) {
      if ((error as { code?: string }).code !== LOCKED) throw error
      if (performance.now() - since >= patienceMs) throw await isRead(client, schema)
      await sleep(delayAfter(tries, RETRY))
    }
}

async function isRead(client: Client, schema: string): Promise<StorageError> {
  const { rows } = await client.query(READERS, [schema, LONG_MS])
  const by = (rows as { pid: number; name: string }[]).map(({ pid, name }) => `${name} (process ${pid} of the server)`)
  return new StorageError(
    'STORAGE_HELD',
    `The schema ${schema} is to be brought up to date, and has tables in use for long${by.length > 0 ? `, by ${by.join(', ')}` : ''}: ` +
      'start again once that backup or report has ended. It was left as it is, and whoever runs goes on.',
  )
}

async function takeSteps(client: Client, schema: string, steps: readonly Step[]): Promise<void> {
  await client.query('BEGIN')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, [`session-gateway migrates ${schema}`])
    const from = await versionOf(client, schema, steps.length)
    if (from === 0) {
      await assertTakesAnyText(client)
      // asked first: whoever may not make one may still have been given one
      const there = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])
      if (there.rowCount === 0) await client.query(`CREATE SCHEMA ${quoted(schema)}`)
      await client.query(
        inSchema('CREATE TABLE @schema_versions (version integer PRIMARY KEY, taken_at timestamptz NOT NULL)', schema),
      )
    } else if (!steps.slice(from).every((step) => isFor(from, step))) await assertNobodyHas(client, schema, from)
    await client.query(LOCK_WAIT)
    for (let version = from; version < steps.length; version++) {
      const step = steps[version]!
      const { sql, usableFrom } = typeof step === 'string' ? { sql: step, usableFrom: null } : step
      await client.query(inSchema(sql, schema))
      await client.query(inSchema('INSERT INTO @schema_versions (version, taken_at) VALUES ($1, now())', schema), [
        version + 1,
      ])
      if (usableFrom !== null)
        await client.query(inSchema('UPDATE @schema_versions SET usable_from = $2 WHERE version = $1', schema), [
          version + 1,
          usableFrom,
        ])
    }
    await assertKeys(client, schema, Math.max(from, steps.length))
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}
