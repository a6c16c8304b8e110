import { type Database, rowsOf, type SqlValue } from './driver.js'
import type { Table } from './schema.js'

/** Columns whose text is JSON: a page in the middle of a long one can be overwritten without SQLite seeing it. */
const JSON_COLUMNS: Partial<Record<Table, readonly string[]>> = {
  sessions: ['state'],
  origins: ['origin'],
  snapshots: ['snapshot'],
  events: ['json'],
  parked: ['record'],
  profiles: ['profile'],
  jobs: ['info', 'request'],
  idempotency_keys: ['answer', 'made'],
  deliveries: ['delivery'],
  delivery_attempts: ['attempt'],
  notifications: ['notification'],
  news: ['news'],
  push_subscriptions: ['subscription'],
  sign_ins: ['sign_in'],
  gateway_keys: ['value'],
}
/** What a row is named by. */
const NAMES: Partial<Record<Table, readonly string[]>> = {
  events: ['session', 'seq'],
  snapshots: ['session'],
  origins: ['session'],
  news: ['session', 'key'],
  profiles: ['name'],
  gateway_keys: ['name'],
  idempotency_keys: ['key'],
  delivery_attempts: ['n'],
  notifications: ['n'],
}
/** Of the gateway's keys the one that is JSON. */
const KEY_OF_JSON = 'vapid'

type Row = Record<string, SqlValue>

/** The column of a row whose text is damaged; undefined: none. */
export function damagedColumn(table: Table, row: Row): string | undefined {
  if (table === 'gateway_keys' && row.name !== KEY_OF_JSON) return undefined
  return JSON_COLUMNS[table]?.find((column) => row[column] !== undefined && !isJson(row[column]))
}

/** Says of each row with damaged text which one it is, at most so many. */
export function damagedRows(db: Database, tables: readonly Table[], most: number): string[] {
  const said: string[] = []
  for (const table of tables) {
    const has = new Set<string>(
      db
        .prepare(`PRAGMA table_info(${table})`)
        .all()
        .map(({ name }) => name),
    )
    const columns = (JSON_COLUMNS[table] ?? []).filter((name) => has.has(name))
    if (columns.length === 0) continue
    const names = NAMES[table] ?? ['id']
    // SQLite takes less for JSON than a gateway does, as text that lies very deep
    const invalid = columns.map((name) => `NOT json_valid(${name})`).join(' OR ')
    for (const row of rowsOf(
      db.prepare(`SELECT ${[...names, ...columns].join(', ')} FROM ${table} WHERE ${invalid}`),
    )) {
      if (said.length >= most) return said
      const column = damagedColumn(table, row)
      const which = names.map((name) => `${name} = ${JSON.stringify(row[name])}`).join(', ')
      if (column) said.push(`table ${table}, row with ${which}: the text in column ${column} is damaged`)
    }
  }
  return said
}

function isJson(text: SqlValue | undefined): boolean {
  if (text === null) return true
  try {
    JSON.parse(text as string)
    return true
  } catch {
    return false
  }
}
