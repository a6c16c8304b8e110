import { isSound } from '../sql/json-columns.js'
import { cutOffBy, cutOffMessage } from './cut-off.js'
import { type Database, loadDriver, rowsOf, type SqlValue } from './driver.js'
import { damaged, failureOf, RESTORE, Refusal } from './failures.js'
import type { SalvageReport } from './maintenance.js'
import { readableRows } from './readable-rows.js'
import { FIND_BY_STATE, migrate, TABLES, type Table, versionOf } from './schema.js'
import { BUSY_TIMEOUT_MS, inTransaction } from './transaction.js'

/** What came of one table. */
export interface SalvagedTable {
  /** In the new database. */
  rows: number
  /** Rows that an index of the damaged database knows and that are not in the new one; most first, at most a hundred. */
  missing: { of: string; rows: number }[]
  /** All of them. */
  missingRows: number
  /** Something could not be read and no index tells whether that is all. */
  unknown: boolean
}

interface Column {
  name: string
  type: string
  pk: number
}

const MAX_NAMED = 100

/**
 * @param target an empty file, to be synced and, when this throws, removed by the caller
 * @throws Refusal for a database of something else or of a newer version, and for one whose list of tables is lost
 */
export async function salvageFile(path: string, target: string): Promise<SalvageReport> {
  const OpenDatabase = await loadDriver()
  const source = new OpenDatabase(path, { readOnly: true })
  try {
    source.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA cell_size_check = ON`)
    assertSalvageable(source, path)
    const copy = new OpenDatabase(target)
    try {
      copy.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF')
      migrate(copy, target)
      source.exec('BEGIN')
      const tables = salvageInto(copy, source)
      const { integrity_check: said } = copy.prepare('PRAGMA integrity_check(1)').get()
      if (said !== 'ok') throw damaged(target, said)
      const ok = Object.values(tables).every(({ missingRows, unknown }) => missingRows === 0 && !unknown)
      return { path, target, ok, tables }
    } finally {
      copy.close()
    }
  } finally {
    source.close()
  }
}

function assertSalvageable(source: Database, path: string): void {
  try {
    source.prepare('SELECT count(*) FROM sqlite_master').get()
  } catch (error) {
    if (cutOffBy(error, path)) throw new Refusal(cutOffMessage(path))
    const { code, message } = failureOf(error, path, RESTORE)
    throw new Refusal(`The list of its tables cannot be read, and nothing is found without it: ${message}`, code)
  }
  try {
    versionOf(source, path)
  } catch (error) {
    // the table of versions may be what is damaged
    if (error instanceof Refusal) throw error
  }
}

/** Copies every row that can be read into a new database that has its tables already. */
function salvageInto(target: Database, source: Database): Record<Table, SalvagedTable> {
  const unread = new Map<Table, boolean>()
  for (const table of TABLES)
    unread.set(
      table,
      inTransaction(target, () => copyTable(target, source, table)),
    )
  inTransaction(target, () => {
    // without its beginning a session is in every list and can be opened by nobody
    target.exec('DELETE FROM sessions WHERE key NOT IN (SELECT session FROM origins)')
    target.exec(FIND_BY_STATE)
    keepNumbers(target, source)
  })
  const ids = sessionIds(source)
  const salvaged = TABLES.map((table) => [table, compare(target, source, table, unread.get(table)!, ids)])
  return Object.fromEntries(salvaged)
}

/** @returns whether something could not be read */
function copyTable(target: Database, source: Database, table: Table): boolean {
  const known = new Set(columnsOf(source, table).map(({ name }) => name))
  // a table of a version after the one that wrote the database
  if (known.size === 0) return false
  const all = columnsOf(target, table)
  const columns = all.map(({ name }) => name).filter((name) => known.has(name))
  const { wr: withoutRowid } = target.prepare('SELECT wr FROM pragma_table_list(?)').get(table)
  const key = all.find(({ pk }) => pk > 0)
  const named = key?.type === 'INTEGER' || withoutRowid
  const position = named ? key!.name : 'rowid'
  const written = named ? columns : ['rowid', ...columns]
  const insert = target.prepare(
    `INSERT OR IGNORE INTO ${table} (${written.join(', ')}) VALUES (${written.map(() => '?').join(', ')})`,
  )
  let unread = false
  const rows = readableRows(source, {
    select: `SELECT ${written.join(', ')} FROM ${table}`,
    position,
    numbered: !withoutRowid,
    onUnreadable: () => {
      unread = true
    },
  })
  for (const row of rows) {
    if (!isSound(table, row)) unread = true
    else insert.run(...written.map((name) => row[name] as SqlValue))
  }
  return unread
}

const columnsOf = (db: Database, table: string): Column[] => db.prepare(`PRAGMA table_info(${table})`).all()

/** A number that was given once is not given again: a new session would have the events of one whose row is lost. */
function keepNumbers(target: Database, source: Database): void {
  const raise = target.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
  const add = target.prepare('INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)')
  const keep = (name: string, seq: number) => {
    if (raise.run(seq, name).changes === 0) add.run(seq, name)
  }
  const given: { name: string; seq: number }[] = orNothing(() =>
    source.prepare('SELECT name, seq FROM sqlite_sequence').all(),
  )
  for (const { name, seq } of given) if ((TABLES as readonly string[]).includes(name)) keep(name, seq)
  for (const table of ['events', 'origins', 'snapshots', 'removed_sessions', 'news'])
    keep('sessions', target.prepare(`SELECT coalesce(max(session), 0) AS seq FROM ${table}`).get().seq)
}

function orNothing<T>(read: () => T[]): T[] {
  try {
    return read()
  } catch {
    return []
  }
}

/** Ids of sessions by their number, from an index: also of those whose row is lost. */
function sessionIds(source: Database): Map<number, string> {
  const ids = new Map<number, string>()
  const index = indexOf(source, 'sessions')
  if (index) each(source, `SELECT rowid AS n, id FROM sessions INDEXED BY ${index.name}`, ({ n, id }) => ids.set(n, id))
  return ids
}

/** Holds what arrived against an index of the damaged database, which lies in pages of its own. */
function compare(
  target: Database,
  source: Database,
  table: Table,
  unread: boolean,
  ids: ReadonlyMap<number, string>,
): SalvagedTable {
  const { rows } = target.prepare(`SELECT count(*) AS rows FROM ${table}`).get()
  const index = indexOf(source, table)
  if (!index) return { rows, missing: [], missingRows: 0, unknown: unread }
  const count = `SELECT ${index.column} AS part, count(*) AS rows FROM ${table}`
  const arrived = target.prepare(`SELECT count(*) AS rows FROM ${table} WHERE ${index.column} = ?`)
  const missing: SalvagedTable['missing'] = []
  const whole = each(
    source,
    `${count} INDEXED BY ${index.name} GROUP BY ${index.column}`,
    ({ part, rows: expected }) => {
      const lacking = expected - arrived.get(part).rows
      if (lacking > 0) missing.push({ of: nameOf(table, part, ids), rows: lacking })
    },
  )
  missing.sort((a, b) => b.rows - a.rows)
  const missingRows = missing.reduce((sum, { rows }) => sum + rows, 0)
  return { rows, missing: missing.slice(0, MAX_NAMED), missingRows, unknown: unread && (!whole || missingRows === 0) }
}

const nameOf = (table: Table, part: number | string, ids: ReadonlyMap<number, string>): string =>
  table === 'events' ? (ids.get(part as number) ?? `number ${part}`) : String(part)

/** An index with all rows of a table, and what it is ordered by first. */
function indexOf(source: Database, table: Table): { name: string; column: string } | undefined {
  const { wr: withoutRowid } = source.prepare('SELECT wr FROM pragma_table_list(?)').get(table) ?? { wr: 1 }
  if (withoutRowid) return undefined
  const indexes: { name: string; unique: number; partial: number }[] = source
    .prepare(`PRAGMA index_list(${table})`)
    .all()
  const whole = indexes.filter(({ partial }) => !partial).sort((a, b) => b.unique - a.unique)
  if (!whole[0]) return undefined
  const { name } = whole[0]
  return { name, column: source.prepare(`PRAGMA index_info(${name})`).get().name }
}

/** @returns whether all rows could be read */
// biome-ignore lint/suspicious/noExplicitAny: a row is what its query says
function each(source: Database, sql: string, take: (row: any) => void): boolean {
  const rows = rowsOf(source.prepare(sql))
  for (;;) {
    let next: IteratorResult<unknown>
    try {
      next = rows.next()
    } catch {
      return false
    }
    if (next.done) return true
    take(next.value)
  }
}
