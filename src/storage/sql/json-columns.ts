import { isRecord } from '../../lib/json-value.js'
import { tried } from '../../lib/tried.js'
import { StorageError } from '../storage.js'

interface JsonTable {
  /** Whose text is JSON. */
  columns: readonly string[]
  /** What a row is named by. */
  names: readonly string[]
  /** The first of its names, where this is the only row with JSON. */
  only?: string
  /** What the objects are is for others to say. */
  mayBeEmpty?: true
}

/** Where texts are JSON objects: a page in the middle of a long one can be overwritten, or a hand slip, and no database sees it. */
const JSON_TABLES = new Map<string, JsonTable>(
  Object.entries({
    sessions: { columns: ['state'], names: ['id'] },
    origins: { columns: ['origin'], names: ['session'] },
    snapshots: { columns: ['snapshot'], names: ['session'], mayBeEmpty: true },
    events: { columns: ['json'], names: ['session', 'seq'], mayBeEmpty: true },
    news: { columns: ['news'], names: ['n'] },
    parked: { columns: ['record'], names: ['id'] },
    profiles: { columns: ['profile'], names: ['name'] },
    jobs: { columns: ['info', 'request'], names: ['id'] },
    idempotency_keys: { columns: ['answer', 'made'], names: ['key'] },
    deliveries: { columns: ['delivery'], names: ['n'], mayBeEmpty: true },
    delivery_attempts: { columns: ['attempt'], names: ['n'], mayBeEmpty: true },
    notifications: { columns: ['notification'], names: ['n'] },
    gateway_keys: { columns: ['value'], names: ['name'], only: 'vapid' },
    push_subscriptions: { columns: ['subscription'], names: ['id'] },
    sign_ins: { columns: ['sign_in'], names: ['id'] },
  }),
)

type Row = Record<string, unknown>

/** What a text is as a JSON object; undefined: it is none. */
export function objectOf<T>(text: string): T | undefined {
  const value = tried((): unknown => JSON.parse(text))
  return isRecord(value) ? (value as T) : undefined
}

/** The same of what a table keeps: of most an object with nothing in it is none that was written. */
export function keptObject<T>(text: string, table: string): T | undefined {
  const found = objectOf<object>(text)
  const isKept = found && (JSON_TABLES.get(table)?.mayBeEmpty || Object.keys(found).length > 0)
  return isKept ? (found as T) : undefined
}

/** Says whose row of which table cannot be read, and what helps. */
export const unreadable = (what: string, id: string | number, table: string): string =>
  `${what} ${id} cannot be read: the text of its row in the table ${table} of the database is damaged. The row was left in place: ` +
  'mend it, delete it, or restore a backup; `session-gateway doctor` looks for more of them'

/** @throws StorageError that says whose JSON cannot be read, and of which table it is */
export function parsed<T>(text: string, what: string, id: string | number, table: string): T {
  const found = keptObject<T>(text, table)
  if (found === undefined) throw new StorageError('STORAGE_UNREADABLE', unreadable(what, id, table))
  return found
}

/** Whether everything of a row that should be a JSON object is one that it keeps. */
export function isSound(table: string, row: Row): boolean {
  const json = JSON_TABLES.get(table)
  if (!json || (json.only !== undefined && row[json.names[0]!] !== json.only)) return true
  return json.columns.every((column) => row[column] == null || keptObject(row[column] as string, table) !== undefined)
}

/**
 * Asks for rows with damaged text; undefined: the table has no such text.
 * @param isObject how the database says of a column whether its text is a JSON object, with something in it where that is asked
 * @param has whether a table of that version has that column
 */
export function damagedAsked(
  table: string,
  isObject: (column: string, hasFields: boolean) => string,
  has: (column: string) => boolean,
): { columns: string; from: string } | undefined {
  const { columns = [], names = [], only, mayBeEmpty = false } = JSON_TABLES.get(table) ?? {}
  const there = columns.filter(has)
  if (there.length === 0) return undefined
  const damaged = there
    .map((column) => `(${column} IS NOT NULL AND NOT (${isObject(column, !mayBeEmpty)}))`)
    .join(' OR ')
  const where = only === undefined ? damaged : `${names[0]} = '${only}' AND (${damaged})`
  return {
    columns: [...new Set([...names, ...there])].join(', '),
    from: `FROM @${table} WHERE ${where} ORDER BY ${names.join(', ')}`,
  }
}

const NUMBERS = ['n', 'session', 'seq']

/** As a condition that finds it. */
const conditionOf = (row: Row) => (name: string) =>
  `${name} = ${NUMBERS.includes(name) ? row[name] : `'${String(row[name]).replaceAll("'", "''")}'`}`

/** How many rows are named. */
export const MAX_NAMED = 10

/** Rows with damaged text as a problem of the database. @param some the first of them */
export function damageLine(table: string, rows: number, some: readonly Row[]): string {
  const { names } = JSON_TABLES.get(table)!
  const named = some.map((row) => names.map(conditionOf(row)).join(' AND '))
  return `the text of ${rows} row${rows === 1 ? '' : 's'} of the table ${table} is damaged: ${named.join('; ')}${rows > named.length ? '; …' : ''}`
}
