import { shellQuoted } from '../../lib/shell-word.js'
import { damagedAsked, damageLine, MAX_NAMED } from '../sql/json-columns.js'
import { StorageError } from '../storage.js'
import { failureOf, placeOf, urlWithoutPassword } from './failures.js'
import { type Holder, holderOf, holdersIn } from './holders.js'
import { lackOfKeys } from './keys.js'
import { Link } from './link.js'
import { StatementError } from './pipeline.js'
import { statement } from './plan.js'
import { inSchema, quoted, SCHEMA_VERSION, TABLES } from './schema.js'
import { versionOf } from './schema-version.js'
import { directOptions, type PostgresStorageOptions } from './storage.js'
import { isKept } from './values.js'
import { checkWays } from './ways.js'

/** What a look at a database has found. */
export interface PostgresReport {
  /** Where it is, without the password, and of what version. */
  place: string
  schema: string
  server: string
  /** A gateway of this version can use it, and nothing of it is damaged. */
  ok: boolean
  /** Why a gateway would not use it, and what would not work, each with what to do about it. */
  problems: string[]
  /** Rows whose text is damaged, of a schema of this version. */
  damage: string[]
  /** What is confirmed survives a crash of the server's machine. */
  durable: boolean
  /** Absent when the schema is not ours; 0 before its first start. */
  schemaVersion?: number
  /** Who uses it, or has ended without leaving. */
  holders: Holder[]
  /** Rows, as the server counts them along, and bytes of each table, its indexes included. */
  tables: Record<string, { rows: number; bytes: number }>
  /** What belongs to no session. */
  orphans: { events: number; snapshots: number }
  /** Removed sessions whose events are still to be swept. */
  unswept: number
}

// names that are looked up, by to_regclass too, end the statement in a schema that the user may not use
const SERVER = `SELECT version() AS version, pg_is_in_recovery() AS standby, current_user AS "user",
  current_setting('fsync') AS fsync, current_setting('default_transaction_read_only') AS "readOnly",
  (SELECT least(nullif(rolconnlimit, -1), nullif(datconnlimit, -1)) FROM pg_roles, pg_database
    WHERE rolname = session_user AND datname = current_database() AND NOT rolsuper) AS connections,
  current_setting('server_encoding') AS encoding, has_database_privilege(current_database(), 'CREATE') AS may,
  (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1) AS uses,
  (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1)
    AND NOT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = $1 AND relkind = 'r' AND NOT pg_has_role(relowner, 'USAGE')) AS takes,
  (SELECT array_agg(format('%I.%I', nspname, relname) ORDER BY relname)
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = $1 AND relkind = 'r'
      AND EXISTS (SELECT FROM pg_class AS ours WHERE ours.relnamespace = pg_namespace.oid AND ours.relname = 'schema_versions')
      AND NOT (has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'INSERT')
        AND has_table_privilege(pg_class.oid, 'UPDATE') AND has_table_privilege(pg_class.oid, 'DELETE'))) AS denied`
const SIZES = `SELECT relname AS name, pg_stat_get_live_tuples(oid) AS rows, pg_total_relation_size(oid) AS bytes
  FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relkind = 'r'`
const ORPHANS = `SELECT
  (SELECT count(*) FROM @events WHERE NOT EXISTS (SELECT FROM @sessions WHERE key = session)
    AND NOT EXISTS (SELECT FROM @removed_sessions AS r WHERE r.session = events.session)) AS events,
  (SELECT count(*) FROM @snapshots WHERE NOT EXISTS (SELECT FROM @sessions WHERE key = session)) AS snapshots,
  (SELECT count(*) FROM @removed_sessions) AS unswept`

/**
 * Whether a gateway could use a database; what is there is only read.
 * @throws StorageError that says what to do about it
 */
export async function checkPostgres(options: PostgresStorageOptions): Promise<void> {
  const { problems } = await look(options, async () => ({}))
  if (problems.length > 0) throw new StorageError('POSTGRES_UNUSABLE', problems.join('; '))
}

/**
 * Looks through a database, also while a gateway uses it.
 * @throws StorageError when it cannot be reached
 */
export const doctorPostgres = (options: PostgresStorageOptions): Promise<PostgresReport> =>
  look(options, async (link, schema, version) => {
    const [sizes] = await link.run([statement(SIZES, schema)])
    const [orphans] = await link.run([statement(ORPHANS)])
    const holders = (await holdersIn(link.client, schema, version)).map(holderOf)
    const { events, snapshots, unswept } = orphans![0] as Record<string, number>
    const found = new Map(
      sizes!.map(({ name, rows, bytes }) => [name, { rows: rows as number, bytes: bytes as number }]),
    )
    return {
      holders,
      damage: version < SCHEMA_VERSION ? [] : await damageOf(link, schema),
      tables: Object.fromEntries(TABLES.flatMap((name) => (found.has(name) ? [[name, found.get(name)!]] : []))),
      orphans: { events: events!, snapshots: snapshots! },
      unswept: unswept!,
    }
  })

async function damageOf({ client }: Link, schema: string): Promise<string[]> {
  const lines: string[] = []
  for (const table of TABLES) {
    const asked = damagedAsked(table, isKept, () => true)
    if (!asked) continue
    // not through the link: of a large database this takes longer than any answer to a gateway
    const { rows } = await client.query(
      inSchema(`SELECT ${asked.columns}, count(*) OVER () AS rows ${asked.from} LIMIT ${MAX_NAMED}`, schema),
    )
    if (rows[0]) lines.push(damageLine(table, Number(rows[0].rows), rows))
  }
  return lines
}

/**
 * Replaces a key of the gateway's own, also while a gateway uses the database.
 * @throws StorageError when it cannot be reached, or no gateway of this version has used it yet
 */
export async function saveKeyPostgres(options: PostgresStorageOptions, name: string, value: string): Promise<void> {
  await withLink(options, async (link, schema) => {
    if ((await versionOf(link.client, schema)) < SCHEMA_VERSION)
      throw new StorageError('STORAGE_EMPTY', `${placeOf(options.url)} was not used by a gateway of this version yet.`)
    await link.client.query(
      inSchema(
        'INSERT INTO @gateway_keys (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
        schema,
      ),
      [name, value],
    )
  })
}

/** How a schema is copied and put back, with PostgreSQL's own tools. */
export function backupHelp(options: PostgresStorageOptions, target: string): string[] {
  const { schema } = directOptions(options)
  const url = shellQuoted(urlWithoutPassword(options.listenUrl ?? options.url))
  return [
    `a PostgreSQL database is copied with its own tools, also while the gateway runs (they ask for the password, or take it from PGPASSWORD):`,
    `    pg_dump --format=custom --encoding=UTF8 --schema=${shellQuoted(quoted(schema))} --file=${shellQuoted(target)} ${url}`,
    `to restore it, stop the gateway, then:`,
    `    pg_restore --clean --if-exists --single-transaction --dbname=${url} ${shellQuoted(target)}`,
    `and, so that clients which were told more than the copy has start over:`,
    `    psql --command=${shellQuoted(`SELECT ${inSchema('@go_on_apart_1()', schema)}`)} ${url}`,
  ]
}

async function look(
  options: PostgresStorageOptions,
  ours: (link: Link, schema: string, version: number) => Promise<Partial<PostgresReport>>,
): Promise<PostgresReport> {
  return withLink(options, async (link, schema) => {
    const { rows } = await link.client.query(SERVER, [schema])
    const { version, standby, readOnly, connections, user, fsync, encoding, may, uses, takes, denied } = rows[0]
    const problems: string[] = []
    if (standby) problems.push('the server is a standby, which only reads: name the primary')
    else if (readOnly === 'on')
      problems.push(
        `the database only reads for ${user}: turn default_transaction_read_only off, for the server, the database and the role`,
      )
    if (connections !== null && connections < 2)
      problems.push(
        `${user} may have ${connections} connection${connections === 1 ? '' : 's'} here, and the gateway needs two: raise the CONNECTION LIMIT of role and database`,
      )
    if (encoding !== 'UTF8') problems.push(`the database is encoded in ${encoding}: make one with ENCODING 'UTF8'`)
    if (schema.startsWith('pg_'))
      problems.push(`names that begin with pg_ are PostgreSQL's own: give the schema another one`)
    if (uses === null && !may)
      problems.push(
        `${user} may not make the schema ${schema}: GRANT CREATE ON DATABASE … TO ${user}, or CREATE SCHEMA ${quoted(schema)} AUTHORIZATION ${user}`,
      )
    if (uses === false)
      problems.push(
        `${user} may not use the schema ${schema}: ALTER SCHEMA ${quoted(schema)} OWNER TO ${user}, and its tables`,
      )
    // as a restore by another user leaves them
    if (uses && denied)
      problems.push(
        `${user} may not use every table of the schema ${schema}: ` +
          denied.map((table: string) => `ALTER TABLE ${table} OWNER TO ${user}`).join('; '),
      )
    const unfit = await checkWays(link, directOptions(options)).catch((error) => failureOf(error, placeOf(options.url)))
    if (unfit) problems.push(unfit.message)
    let found: Partial<PostgresReport> = {}
    let schemaVersion: number | undefined
    try {
      if (!uses) schemaVersion = 0
      else if (!denied) schemaVersion = await versionOf(link.client, schema)
      // who was granted its tables uses them, and only their owner can change them
      if (uses && !takes && schemaVersion !== undefined && schemaVersion < SCHEMA_VERSION)
        problems.push(
          `${user} may not bring the schema ${schema} from version ${schemaVersion} to ${SCHEMA_VERSION}: start this version once as its owner, or ALTER SCHEMA ${quoted(schema)} OWNER TO ${user}, and its tables`,
        )
      const lack = schemaVersion && (await lackOfKeys(link.client, schema, schemaVersion))
      if (lack) problems.push(lack)
      if (schemaVersion) found = await ours(link, schema, schemaVersion)
    } catch (error) {
      problems.push(failureOf(error instanceof StatementError ? error.error : error, placeOf(options.url)).message)
    }
    return {
      ...{ place: placeOf(options.url), schema, server: String(version).split(' on ')[0]!, problems },
      ok: problems.length === 0 && !found.damage?.length,
      durable: fsync === 'on',
      ...(schemaVersion !== undefined && { schemaVersion }),
      holders: [],
      damage: [],
      tables: {},
      orphans: { events: 0, snapshots: 0 },
      unswept: 0,
      ...found,
    }
  })
}

async function withLink<T>(
  options: PostgresStorageOptions,
  work: (link: Link, schema: string) => Promise<T>,
): Promise<T> {
  const direct = directOptions(options)
  const link = await Link.open(direct)
  try {
    return await work(link, direct.schema)
  } catch (error) {
    throw failureOf(error instanceof StatementError ? error.error : error, direct.place)
  } finally {
    await link.end()
  }
}
