import { parentPort, workerData } from 'node:worker_threads'
import { damagedAsked, damageLine, isSound, MAX_NAMED } from '../sql/json-columns.js'
import { copiesShrink, shrinks } from './connection.js'
import { goOnApart } from './copies.js'
import { assertNotEmptied, cutOffBy, cutOffMessage, sizeOf } from './cut-off.js'
import { type Database, loadDriver, rowsOf } from './driver.js'
import { failureOf, isClosed, isFull, Refusal } from './failures.js'
import type { MaintenanceTask, SqliteReport } from './maintenance.js'
import { salvageFile } from './salvage.js'
import { SCHEMA_VERSION, TABLES, versionOf } from './schema.js'
import { channelOperations } from './tables/channels.js'
import { BUSY_TIMEOUT_MS } from './transaction.js'

const MAX_PROBLEMS = 20

/** A thread that does one task through a connection of its own and ends; but for keys, the connection only reads. */
const task = workerData as MaintenanceTask
const port = parentPort!

try {
  const OpenDatabase = await loadDriver()
  if (task.task !== 'doctor') assertNotEmptied(task.path)
  if (task.task === 'doctor') port.postMessage({ result: examine() })
  else if (task.task === 'check') port.postMessage(glance())
  else if (task.task === 'salvage') {
    const result = await salvageFile(task.path, task.target)
    goOnApart(OpenDatabase, task.target)
    port.postMessage({ result })
  } else if (task.task === 'saveKey') {
    const db = new OpenDatabase(task.path)
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    assertCurrent(db, task.path)
    channelOperations(db)['channels.saveKey'](task.name, task.value)
    db.close()
    port.postMessage({})
  } else {
    if (sizeOf(task.path) === 0)
      throw new Refusal(`${task.path} is empty: there is nothing to copy before the first start of a gateway.`)
    const db = new OpenDatabase(task.path, { readOnly: true })
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    versionOf(db, task.path)
    copiesShrink(db)
    db.prepare('VACUUM INTO ?').run(task.target)
    db.close()
    goOnApart(OpenDatabase, task.target)
    port.postMessage({})
  }

  function glance(): object {
    try {
      const db = new OpenDatabase(task.path, { readOnly: true })
      db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
      versionOf(db, task.path)
      db.close()
    } catch (error) {
      // the next start takes it back
      if (!cutOffBy(error, task.path)) throw error
    }
    return {}
  }

  function examine(): SqliteReport {
    const report: SqliteReport = {
      path: task.path,
      ok: false,
      problems: [],
      bytes: { database: sizeOf(task.path), wal: sizeOf(`${task.path}-wal`), free: 0 },
      tables: {},
      orphans: { events: 0, snapshots: 0, parked: 0 },
      unswept: 0,
    }
    try {
      assertNotEmptied(task.path)
      const db = new OpenDatabase(task.path, { readOnly: true })
      db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
      look(db, report)
      db.close()
    } catch (error) {
      const cutOff = cutOffBy(error, task.path)
      if (cutOff === 'empty') report.schemaVersion = 0
      else if (cutOff) report.refusal = cutOffMessage(task.path)
      else if (isClosed(error)) report.refusal = failureOf(error, task.path).message
      else report.problems.push(failureOf(error, task.path).message)
    }
    report.ok = report.problems.length === 0 && report.refusal === undefined
    return report
  }
} catch (error) {
  // only the new file takes room
  const file = 'target' in task && isFull(error) ? task.target : task.path
  port.postMessage({ failure: failureOf(error, file) })
}

/** The tables of a database are made by a gateway that opens it. */
function assertCurrent(db: Database, path: string): void {
  const version = versionOf(db, path)
  if (version === SCHEMA_VERSION) return
  throw new Refusal(
    `${path} is of an earlier version: let the gateway of this one open it once, then try again. It was left as it is.`,
    'STORAGE_OLDER',
  )
}

function look(db: Database, report: SqliteReport): void {
  try {
    report.schemaVersion = versionOf(db, report.path)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    report.refusal = error.message
  }
  const said: string[] = db
    .prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`)
    .all()
    .map(({ integrity_check }) => integrity_check)
  report.problems.push(...said.filter((line) => line !== 'ok'))
  if (!report.schemaVersion) return
  const count = (sql: string): number => db.prepare(`SELECT count(*) AS n ${sql}`).get().n
  const pragma = (name: string): number => db.prepare(`PRAGMA ${name}`).get()[name]
  report.bytes.free = pragma('freelist_count') * pragma('page_size')
  report.shrinks = shrinks(db)
  const size = db.prepare(
    `SELECT coalesce(sum(pgsize), 0) AS bytes FROM dbstat('main', 1)
     WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = ?)`,
  )
  const has = new Set(
    db
      .prepare('SELECT name FROM sqlite_master')
      .all()
      .map(({ name }) => name),
  )
  // those that an earlier version did not have the next start makes
  const tables = TABLES.filter((table) => report.schemaVersion === SCHEMA_VERSION || has.has(table))
  for (const table of tables) report.tables[table] = { rows: count(`FROM ${table}`), bytes: size.get(table).bytes }
  // of a file with holes the rows cannot all be read
  if (report.problems.length === 0) report.problems.push(...tables.flatMap((table) => damageOf(db, table)))
  const known = 'session NOT IN (SELECT key FROM sessions)'
  const removed = 'session IN (SELECT session FROM removed_sessions)'
  report.orphans = {
    events: count(`FROM events WHERE ${known} AND NOT ${removed}`),
    snapshots: count(`FROM snapshots WHERE ${known}`),
    parked: count('FROM parked WHERE id NOT IN (SELECT id FROM sessions)'),
  }
  report.unswept = count(`FROM events WHERE ${removed}`)
}

function damageOf(db: Database, table: string): string[] {
  const columns: { name: string }[] = db.prepare(`PRAGMA table_info(${table})`).all()
  const asked = damagedAsked(
    table,
    (column, hasFields) =>
      `CASE WHEN json_valid(${column}) THEN json_type(${column}) = 'object' ${hasFields ? `AND json(${column}) <> '{}'` : ''} ELSE false END`,
    (column) => columns.some(({ name }) => name === column),
  )
  if (!asked) return []
  let rows = 0
  const some: Record<string, unknown>[] = []
  for (const row of rowsOf(db.prepare(`SELECT ${asked.columns} ${asked.from.replace('@', '')}`))) {
    // what lies very deep SQLite does not take for JSON, and a gateway does
    if (isSound(table, row)) continue
    rows++
    if (some.length < MAX_NAMED) some.push(row)
  }
  return rows > 0 ? [damageLine(table, rows, some)] : []
}
