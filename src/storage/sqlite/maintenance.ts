import { once } from 'node:events'
import { open, realpath, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ended } from '../../lib/sentence.js'
import { StorageError } from '../storage.js'
import { loadDriver } from './driver.js'
import type { Failure } from './failures.js'
import type { SalvagedTable } from './salvage.js'
import { startThread, threadFile } from './thread.js'

/** What a look through a database has found. */
export interface SqliteReport {
  path: string
  /** There are no problems, and a gateway of this version can use it. */
  ok: boolean
  /** Damage, at most twenty in SQLite's words, and tables with rows whose text is damaged. */
  problems: string[]
  /** Why a gateway of this version does not use it, damaged or not, as it would say; the tables were not counted then. */
  refusal?: string
  /** Absent when the file cannot be read as a database of ours; 0 before its first start is through. */
  schemaVersion?: number
  /** Of the file, of its write-ahead log, and of what is unused inside. */
  bytes: { database: number; wal: number; free: number }
  /** Whether what is unused inside is given back to the file system; absent when the file cannot be read. */
  shrinks?: boolean
  /** Rows and bytes of each table, its indexes included. */
  tables: Record<string, { rows: number; bytes: number }>
  /** What belongs to no session: events, snapshots, and parked sessions that no session of the journal stands for. */
  orphans: { events: number; snapshots: number; parked: number }
  /** Events of sessions that were removed, which are still to be swept. */
  unswept: number
}

/** What could be saved from a database. */
export interface SalvageReport {
  path: string
  target: string
  /** All of it. */
  ok: boolean
  tables: Record<string, SalvagedTable>
}

export type MaintenanceTask =
  | { task: 'check'; path: string }
  | { task: 'doctor'; path: string }
  | { task: 'backup' | 'salvage'; path: string; target: string }
  | { task: 'saveKey'; path: string; name: string; value: string }

/**
 * Looks through a database for damage, also while another process has it open.
 * @throws StorageError when there is no such file
 */
export async function doctorSqlite(file: string): Promise<SqliteReport> {
  return inThread<SqliteReport>({ task: 'doctor', path: await existing(file) })
}

/**
 * Whether a gateway could use a file, as far as a glance tells; also while another process has it open. One that is not there yet it could.
 * @throws StorageError that says what to do about it
 */
export async function checkSqlite(file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined)
  // which is left of one that was removed
  const log = await stat(`${file}-wal`).catch(() => undefined)
  if (stats?.isFile()) await inThread<void>({ task: 'check', path: await existing(file) })
  else if (!stats && log?.size) await inThread<void>({ task: 'check', path: resolve(file) })
  // what makes it at the first start may not be there
  else await loadDriver()
}

/**
 * Copies a database into a new file for this account alone, also while another process has it open: a whole one, as it was at one moment.
 * @throws StorageError when there is no such database, or the target exists
 */
export async function backupSqlite(file: string, target: string): Promise<void> {
  const path = await existing(file)
  await intoNewFile(target, 'backups', (copy) => inThread<void>({ task: 'backup', path, target: copy }))
}

/**
 * Replaces a key of the gateway's own, also while another process has the database open.
 * @throws StorageError when there is no such database, or one that a gateway of this version has not opened yet
 */
export async function saveKeySqlite(file: string, name: string, value: string): Promise<void> {
  await inThread<void>({ task: 'saveKey', path: await existing(file), name, value })
}

/**
 * Writes every row of a damaged database that can be read into a new one, for this account alone; the damaged one is only read. Tables
 * are read around the pages that cannot be, and held against their indexes to tell what is missing.
 * @throws StorageError when there is no such database, the target exists, or nothing can be read
 */
export async function salvageSqlite(file: string, target: string): Promise<SalvageReport> {
  const path = await existing(file)
  return intoNewFile(target, 'salvages', (copy) => inThread({ task: 'salvage', path, target: copy }))
}

/** Nothing is left of the file when the work fails. */
async function intoNewFile<T>(target: string, what: string, work: (path: string) => Promise<T>): Promise<T> {
  const copy = resolve(target)
  try {
    await (await open(copy, 'wx', 0o600)).close()
  } catch (error) {
    const { code = 'STORAGE', message } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? `it exists already, and ${what} overwrite nothing` : message
    throw new StorageError(code, `${copy} cannot be written: ${ended(why)}`)
  }
  try {
    const result = await work(copy)
    await sync(copy)
    await sync(dirname(copy))
    return result
  } catch (error) {
    await rm(copy, { force: true })
    throw error
  }
}

/** The real path of a database that is there. @throws StorageError */
export async function existing(file: string): Promise<string> {
  try {
    const path = await realpath(file)
    if ((await stat(path)).isFile()) return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // whether it is there this account is not told
    if (code === 'EACCES' || code === 'EPERM')
      throw new StorageError(
        code,
        `This account may not look for ${resolve(file)}: be the one that the gateway runs as.`,
      )
  }
  throw new StorageError('ENOENT', `There is no database ${resolve(file)}. A gateway makes it at its first start.`)
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function inThread<T>(task: MaintenanceTask): Promise<T> {
  const worker = startThread(threadFile('maintenance-worker'), task)
  const [{ result, failure }] = (await once(worker, 'message')) as [{ result: T; failure?: Failure }]
  await worker.terminate()
  if (failure) throw new StorageError(failure.code, failure.message)
  return result
}
