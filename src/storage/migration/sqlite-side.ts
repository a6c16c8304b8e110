import { open, realpath, rename, rm, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { openDatabase } from '../sqlite/connection.js'
import { assertNotEmptied } from '../sqlite/cut-off.js'
import { type Database, loadDriver, rowsOf } from '../sqlite/driver.js'
import { failureOf, Refusal, resultCodeOf } from '../sqlite/failures.js'
import { type HeldFile, holdFile } from '../sqlite/files.js'
import { existing } from '../sqlite/maintenance.js'
import { FIND_BY_STATE, SCHEMA_VERSION, versionOf } from '../sqlite/schema.js'
import { StorageError } from '../storage.js'
import { COPIED, type CopiedRow, type CopiedTable, jobColumns, orderOf, type Side, type Target } from './tables.js'

const ROWS_AT_ONCE = 50

class SqliteSide implements Side {
  readonly name: string
  readonly tables = COPIED
  protected readonly db: Database

  constructor(name: string, db: Database) {
    this.name = name
    this.db = db
  }

  async *read(table: CopiedTable): AsyncIterable<CopiedRow[]> {
    const { name, columns } = table
    const names = columns.map((column) => column.name).join(', ')
    const select =
      name === 'feed'
        ? "SELECT epoch, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'notifications'), 0) AS last_number FROM feed"
        : `SELECT ${names} FROM ${name} ${name === 'events' ? 'WHERE session IN (SELECT key FROM sessions)' : ''}`
    let some: CopiedRow[] = []
    try {
      for (const row of rowsOf(this.db.prepare(`${select} ORDER BY ${orderOf(table)}`))) {
        some.push(columns.map((column) => row[column.name] as CopiedRow[number]))
        if (some.length < ROWS_AT_ONCE) continue
        yield some
        some = []
      }
    } catch (error) {
      throw explained(error, this.name)
    }
    if (some.length > 0) yield some
  }

  async lastNumbers(): Promise<Map<string, number>> {
    const rows: { name: string; seq: number }[] = this.db.prepare('SELECT name, seq FROM sqlite_sequence').all()
    return new Map(rows.map(({ name, seq }) => [name, seq]))
  }

  async close(): Promise<void> {
    this.db.close()
  }
}

/** Whether two paths lead to one file. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map((file) => realpath(resolve(file)).catch(() => undefined)))
  return first !== undefined && first === second
}

/** A database that is only read, and held for as long. @throws StorageError, LockHeldError */
export async function sqliteSource(file: string): Promise<Side> {
  return letGoIfRefused(await holdFile(await existing(file)), onlyRead)
}

async function onlyRead({ path, release }: HeldFile): Promise<Side> {
  const Driver = await loadDriver()
  assertNotEmptied(path)
  const db = new Driver(path, { readOnly: true })
  if (versionOf(db, path) < SCHEMA_VERSION)
    throw new StorageError('STORAGE_OLDER', `${path} is of an earlier version: start and stop the gateway on it once.`)
  return Object.assign(new SqliteSide(path, db), {
    close: async () => {
      db.close()
      await release()
    },
  })
}

async function letGoIfRefused<Opened>(held: HeldFile, open: (held: HeldFile) => Promise<Opened>): Promise<Opened> {
  try {
    return await open(held)
  } catch (error) {
    await held.release()
    throw explained(error, held.path)
  }
}

/** What SQLite says, or what the file is refused for, in words that name it. */
function explained(error: unknown, path: string): unknown {
  if (!(error instanceof Refusal) && resultCodeOf(error) === undefined) return error
  const { code, message } = failureOf(error, path)
  return new StorageError(code, message)
}

/** What is written until it is whole, by a name that says so should nobody end it. */
const draftOf = (path: string): string => `${path}.migrating`

const removeDraft = (path: string): Promise<unknown> =>
  Promise.all(['', '-wal', '-shm'].map((end) => rm(`${draftOf(path)}${end}`, { force: true })))

/** Written beside its place, and put there when it is whole. */
class SqliteTarget extends SqliteSide implements Target {
  readonly #held: HeldFile

  constructor(held: HeldFile, db: Database) {
    super(held.path, db)
    this.#held = held
    db.exec('BEGIN')
  }

  async write(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
    try {
      this.#write(table, rows)
    } catch (error) {
      throw explained(error, this.name)
    }
  }

  #write({ name, columns }: CopiedTable, rows: readonly CopiedRow[]): void {
    const isFeed = name === 'feed'
    const names = (isFeed ? columns.slice(0, 1) : columns).map((column) => column.name)
    const all =
      name === 'jobs' ? [...names, 'status', 'profile', 'created_at', 'next_run_at', 'ready', 'finished_at'] : names
    const insert = this.db.prepare(`INSERT INTO ${name} (${all.join(', ')}) VALUES (${all.map(() => '?').join(', ')})`)
    for (const row of rows) {
      if (name !== 'jobs') insert.run(...row.slice(0, names.length))
      else {
        const { job, next, ready, end } = jobColumns(row)
        insert.run(...row, job.status, job.profile, job.createdAt, next, ready, end)
      }
      if (isFeed) this.#keepNumber('notifications', row[1] as number)
    }
  }

  async keepNumbers(numbers: ReadonlyMap<string, number>): Promise<void> {
    for (const [name, last] of numbers) this.#keepNumber(name, last)
  }

  #keepNumber(name: string, last: number): void {
    const { changes } = this.db.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?').run(last, name)
    if (Number(changes) === 0 && last > 0)
      this.db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last)
  }

  async commit(): Promise<void> {
    try {
      this.db.exec(FIND_BY_STATE)
      this.db.exec('COMMIT')
      this.db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      this.db.close()
    } catch (error) {
      throw explained(error, this.name)
    }
    const draft = draftOf(this.#held.path)
    const file = await open(draft, 'r')
    await file.sync()
    await file.close()
    await rename(draft, this.#held.path)
  }

  override async close(): Promise<void> {
    try {
      this.db.close()
    } catch {
      // it was, with the commit
    }
    await removeDraft(this.#held.path)
    await this.#held.release()
  }
}

/** @returns a new database, or the one that is there, only to be compared with. @throws StorageError, LockHeldError */
export async function sqliteTarget(file: string): Promise<Target | Side> {
  return letGoIfRefused(await holdFile(file), async (held) => {
    // Whoever holds the file is the only one to write one: it was left by one that was killed.
    await removeDraft(held.path)
    // Looked at only now: until it was held another migration could have filled it.
    const { size } = await stat(held.path)
    if (size > 0) return onlyRead(held)
    const draft = draftOf(held.path)
    try {
      await (await open(draft, 'wx', 0o600)).close()
      return new SqliteTarget(held, await openDatabase({ path: draft, synchronous: 'full', pragmas: [] }))
    } catch (error) {
      await removeDraft(held.path)
      throw error
    }
  })
}
