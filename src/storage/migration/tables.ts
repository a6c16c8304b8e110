import { createHash } from 'node:crypto'
import type { StoredJob } from '../../jobs/job.js'
import { COUNTED } from '../../usage/sums.js'
import { storable } from '../postgres/values.js'
import { parsed } from '../sql/json-columns.js'
import { columnOf, jobTimes } from '../sql/rows.js'

/** A row of a table, its values in the order of the columns. */
export type CopiedRow = (string | number | null)[]

interface CopiedColumn {
  name: string
  isNumber: boolean
  /** Bytes, which a row has as base64. */
  isBytes: boolean
}

export interface CopiedTable {
  name: string
  columns: readonly CopiedColumn[]
  /** By which its rows are ordered: the first so many columns. */
  keys: number
  /** The numbers of its first column are never given again. */
  isNumbered: boolean
}

const table = (
  name: string,
  columns: string,
  { keys = 1, isNumbered = columns.startsWith('#') } = {},
): CopiedTable => ({
  name,
  columns: columns.split(' ').map((column) => ({
    name: column.replace(/[#%]/, ''),
    isNumber: column.startsWith('#'),
    isBytes: column.startsWith('%'),
  })),
  keys,
  isNumbered,
})

/**
 * What is copied from one database to another. What follows from something else is not: the columns by which jobs are found, and the events
 * of sessions that were removed.
 */
export const COPIED: readonly CopiedTable[] = [
  table('sessions', '#key id profile generation #reserved_seq state'),
  table('origins', '#session origin', { isNumbered: false }),
  table('snapshots', '#session snapshot', { isNumbered: false }),
  table('events', '#session #seq json', { keys: 2, isNumbered: false }),
  table('news', '#n #session key news'),
  table('parked', '#n id record'),
  table('profiles', 'name profile'),
  table('jobs', '#n id #priority info request'),
  table('daily_tokens', 'day #tokens'),
  table('idempotency_keys', 'key fingerprint #since answer made'),
  table('deliveries', '#n lane id delivery'),
  table('delivery_attempts', '#n lane attempt'),
  table('gone_targets', '#n key'),
  table('notifications', '#n type session profile #ts notification', { isNumbered: false }),
  table('feed', 'epoch #last_number'),
  table('gateway_keys', 'name value'),
  table('push_subscriptions', '#n id subscription'),
  table('sign_ins', '#n id sign_in'),
  table('usage_sums', `day profile agent person ${COUNTED.map((name) => `#${columnOf(name)}`).join(' ')}`, { keys: 4 }),
]

/** Files of agents for other nodes, which only PostgreSQL keeps: a gateway on SQLite has no other nodes. */
const CARRIED = table('carried', '#session path #at #length digest %bytes', { keys: 3, isNumbered: false })

/** What PostgreSQL keeps, where several nodes write one feed: the order in which notifications came to be read, and how far they are forgotten. */
const OF_SEVERAL: ReadonlyMap<string, CopiedTable> = new Map(
  [
    table('notifications', '#n type session profile #ts notification #place', { isNumbered: false }),
    table('feed', 'epoch #last_number #forgotten'),
  ].map((one) => [one.name, one]),
)

export const COPIED_IN_POSTGRES: readonly CopiedTable[] = [
  ...COPIED.map((one) => OF_SEVERAL.get(one.name) ?? one),
  CARRIED,
]

export const orderOf = ({ columns, keys }: CopiedTable): string =>
  columns
    .slice(0, keys)
    .map(({ name }) => name)
    .join(', ')

/** The columns by which a job is found. @throws StorageError that names it when it cannot be read */
export function jobColumns([, id, , info]: CopiedRow): {
  job: StoredJob
  next: number | null
  ready: number | null
  end: number | null
} {
  const job = parsed<StoredJob>(info as string, 'The job', id as string, 'jobs')
  const [next, ready, end] = jobTimes(job)
  return { job, next, ready, end }
}

/** What was copied of a table: how many rows, and a digest of all that they hold. */
export interface TableSum {
  rows: number
  sha256: string
}

/** One database of a migration. */
export interface Side {
  /** What it is called, without what lets one in. */
  readonly name: string
  /** What can be copied from it, or to it. */
  readonly tables: readonly CopiedTable[]
  /** Rows of a table in their order, some at a time. */
  read(table: CopiedTable): AsyncIterable<CopiedRow[]>
  /** By table, the greatest number that was ever given. */
  lastNumbers(): Promise<Map<string, number>>
  close(): Promise<void>
}

/** The one that is written to: all of it or nothing. */
export interface Target extends Side {
  write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>
  keepNumbers(numbers: ReadonlyMap<string, number>): Promise<void>
  /** Keeps what was written. Without it, `close` leaves the database as it was. */
  commit(): Promise<void>
}

export async function sumOf(
  side: Side,
  of: CopiedTable,
  onRows?: (rows: CopiedRow[]) => Promise<void>,
): Promise<TableSum> {
  const hash = createHash('sha256')
  let rows = 0
  for await (const some of side.read(of)) {
    const kept = some.map((row) => row.map((value) => (typeof value === 'string' ? storable(value) : value)))
    for (const row of kept) hash.update(`${JSON.stringify(row)}\n`)
    rows += kept.length
    await onRows?.(kept)
  }
  return { rows, sha256: hash.digest('hex') }
}
