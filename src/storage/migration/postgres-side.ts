import type { StoredJob } from '../../jobs/job.js'
import { patched } from '../../jobs/patch.js'
import type { Client } from '../postgres/driver.js'
import { failureOf } from '../postgres/failures.js'
import { Link } from '../postgres/link.js'
import { Membership, takeLock } from '../postgres/membership.js'
import { inSchema, SCHEMA_VERSION } from '../postgres/schema.js'
import { versionOf } from '../postgres/schema-version.js'
import { directOptions, type PostgresStorageOptions } from '../postgres/storage.js'
import { parsed } from '../sql/json-columns.js'
import { restColumns } from '../sql/rows.js'
import { StorageError } from '../storage.js'
import {
  COPIED,
  COPIED_IN_POSTGRES,
  type CopiedRow,
  type CopiedTable,
  jobColumns,
  orderOf,
  type Side,
  type Target,
} from './tables.js'

const ROWS_AT_ONCE = 50
const SEEN = `SELECT FROM pg_stat_activity
  WHERE pid = $1 AND backend_start::text = $2 AND datname = current_database()`

class PostgresSide implements Side {
  readonly name: string
  readonly tables = COPIED_IN_POSTGRES
  protected readonly schema: string
  readonly #client: Client
  readonly #onClose: () => Promise<void>

  constructor(name: string, client: Client, schema: string, onClose: () => Promise<void>) {
    this.name = name
    this.#client = client
    this.schema = schema
    this.#onClose = onClose
  }

  protected async query(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    try {
      return (await this.#client.query(inSchema(sql, this.schema), values)).rows
    } catch (error) {
      throw failureOf(error, this.name)
    }
  }

  async *read(table: CopiedTable): AsyncIterable<CopiedRow[]> {
    const { name, columns } = table
    const names = columns
      .map(({ name, isBytes }) => (isBytes ? `encode(${name}, 'base64') AS ${name}` : name))
      .join(', ')
    const kept = name === 'events' ? 'WHERE session IN (SELECT key FROM @sessions)' : ''
    const more = name === 'jobs' ? ', claimed' : ''
    await this.query(
      `DECLARE copied CURSOR FOR SELECT ${names}${more} FROM @${name} ${kept} ORDER BY ${orderOf(table)}`,
    )
    try {
      for (;;) {
        const rows = await this.query(`FETCH ${ROWS_AT_ONCE} FROM copied`)
        if (rows.length === 0) break
        if (name === 'jobs') for (const row of rows) if (row.claimed !== null) row.info = withClaim(row)
        yield rows.map((row) =>
          columns.map(({ name, isNumber }) => {
            const value = row[name] as string | number | null
            return value !== null && isNumber ? Number(value) : value
          }),
        )
      }
    } finally {
      // it is gone with a transaction that failed
      await this.query('CLOSE copied').catch(() => {})
    }
  }

  async lastNumbers(): Promise<Map<string, number>> {
    const numbers = new Map<string, number>()
    for (const { name, columns, isNumbered } of COPIED) {
      if (!isNumbered) continue
      const [row] = await this.query(
        `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM @${name}_${columns[0]!.name}_seq`,
      )
      numbers.set(name, Number(row!.last))
    }
    return numbers
  }

  async close(): Promise<void> {
    await this.#client.query('ROLLBACK').catch(() => {})
    await this.#onClose()
  }
}

function withClaim({ id, info, claimed }: Record<string, unknown>): string {
  const of = <T>(text: unknown): T => parsed(text as string, 'The job', id as string, 'jobs')
  return JSON.stringify(
    patched(of<StoredJob>(info), { status: 'running', nextRunAt: undefined, ...of<object>(claimed) }),
  )
}

class PostgresTarget extends PostgresSide implements Target {
  async write({ name, columns }: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
    const names = columns.map((column) => column.name)
    const types: string[] = columns.map(({ isNumber }) => (isNumber ? 'double precision' : 'text'))
    const lists: unknown[][] = columns.map((_column, index) => rows.map((row) => row[index]))
    if (name === 'jobs') {
      const jobs = rows.map(jobColumns)
      names.push('status', 'profile', 'created_at', 'next_run_at', 'ready', 'finished_at', 'begins', 'home')
      types.push(
        ...['text', 'text', 'double precision', 'double precision'],
        ...['boolean', 'double precision', 'boolean', 'text'],
      )
      lists.push(
        ...[jobs.map(({ job }) => job.status), jobs.map(({ job }) => job.profile)],
        ...[jobs.map(({ job }) => job.createdAt), jobs.map(({ next }) => next)],
        jobs.map(({ ready }) => (ready === null ? null : ready === 1)),
        ...[
          jobs.map(({ end }) => end),
          jobs.map(({ job }) => job.startedAt === undefined && job.webhook === undefined),
          jobs.map(({ job }) => job.notes?.home),
        ],
      )
    }
    if (name === 'sessions') {
      const ends = rows.map(([, id, , , , state]) =>
        restColumns(parsed(state as string, 'The session', id as string, 'sessions'), undefined),
      )
      names.push('ended', 'ended_at', 'engine', 'place')
      types.push('text', 'double precision', 'text', 'double precision')
      lists.push(
        ...[ends.map((end) => end?.ended), ends.map((end) => end?.endedAt), ends.map((end) => end?.engine)],
        ends.map((end, index) => end && (end.place ?? rows[index]![0])),
      )
    }
    const given = types.map((type, index) => `$${index + 1}::${type}[]`)
    const made = names.map((column, index) => (columns[index]?.isBytes ? `decode(${column}, 'base64')` : column))
    await this.query(
      `INSERT INTO @${name} (${names.join(', ')}) SELECT ${made.join(', ')} FROM unnest(${given.join(', ')}) AS given (${names.join(', ')})`,
      lists,
    )
  }

  async keepNumbers(numbers: ReadonlyMap<string, number>): Promise<void> {
    for (const { name, columns, isNumbered } of COPIED)
      if (isNumbered && (numbers.get(name) ?? 0) > 0)
        await this.query(`SELECT setval($1::regclass, $2)`, [
          inSchema(`@${name}_${columns[0]!.name}_seq`, this.schema),
          numbers.get(name),
        ])
  }

  async commit(): Promise<void> {
    await this.query('COMMIT')
  }
}

/** Whether two names lead to one schema: what is connected by one is seen by the other. @throws StorageError */
export async function isSameSchema(one: PostgresStorageOptions, other: PostgresStorageOptions): Promise<boolean> {
  const [first, second] = [directOptions(one), directOptions(other)]
  if (first.schema !== second.schema) return false
  const links = await Promise.all([Link.open(first), Link.open(second)])
  try {
    const { pid, since } = links[0].backend
    const { rowCount } = await links[1].client.query(SEEN, [pid, since])
    return rowCount === 1
  } finally {
    await Promise.all(links.map((link) => link.end()))
  }
}

/** A schema that is only read, and held for as long. @throws StorageError */
export async function postgresSource(options: PostgresStorageOptions): Promise<Side> {
  const direct = directOptions(options)
  const link = await Link.open(direct)
  try {
    const name = `${direct.place}, schema ${direct.schema}`
    const version = await versionOf(link.client, direct.schema)
    if (version === 0) throw new StorageError('STORAGE_EMPTY', `There is nothing of a gateway in ${name}.`)
    if (version < SCHEMA_VERSION)
      throw new StorageError(
        'STORAGE_OLDER',
        `${name} is of an earlier version: start and stop the gateway on it once.`,
      )
    await takeLock(link, direct)
    await link.client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    return new PostgresSide(name, link.client, direct.schema, () => link.end())
  } catch (error) {
    await link.end()
    throw failureOf(error, direct.place)
  }
}

/** A schema that is made when it is missing, and held for as long. @throws StorageError */
export async function postgresTarget(options: PostgresStorageOptions): Promise<Target> {
  const direct = directOptions(options)
  const membership = await Membership.join(direct)
  try {
    const link = await Link.open(direct)
    await link.client.query('BEGIN')
    return new PostgresTarget(`${direct.place}, schema ${direct.schema}`, link.client, direct.schema, async () => {
      await link.end()
      await membership.leave()
    })
  } catch (error) {
    await membership.leave()
    throw failureOf(error, direct.place)
  }
}
