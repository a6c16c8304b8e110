import { statSync } from 'node:fs'
import type { Operations } from '../sql/operations.js'
import { assertNotEmptied, cutOffBy, takeBack } from './cut-off.js'
import { type Database, loadDriver } from './driver.js'
import { damaged } from './failures.js'
import { migrate, versionOf } from './schema.js'
import { channelOperations } from './tables/channels.js'
import { idempotencyOperations } from './tables/idempotency.js'
import { jobOperations } from './tables/jobs.js'
import { notificationOperations } from './tables/notifications.js'
import { outboxOperations } from './tables/outbox.js'
import { probeOperations } from './tables/probe.js'
import { profileOperations } from './tables/profiles.js'
import { journalOperations, parkedOperations } from './tables/sessions.js'
import { signInOperations } from './tables/sign-ins.js'
import { usageOperations } from './tables/usage.js'
import { BUSY_TIMEOUT_MS } from './transaction.js'

export interface ConnectionOptions {
  /** Of a file that exists; an empty one becomes a database. */
  path: string
  synchronous: 'full' | 'normal'
  /** Run after all others. */
  pragmas: readonly string[]
}

/** Larger databases are not read through at every start: that is `doctor`'s. */
const CHECKED_BYTES = 64 * 1024 * 1024
/** Larger databases of an earlier version are not written anew at a start, so that they could give back what is free in them. */
const REWRITTEN_BYTES = 256 * 1024 * 1024
/** `PRAGMA auto_vacuum`: what is free is given back when that is asked for. */
const NEVER = 0
const INCREMENTAL = 2
/** What the write-ahead log is cut down to once it was copied into the database. */
const WAL_BYTES = 64 * 1024 * 1024

/** @throws Refusal, or what SQLite throws; a file that is not usable as it is was not changed then */
export async function openDatabase({ path, synchronous, pragmas }: ConnectionOptions): Promise<Database> {
  const OpenDatabase = await loadDriver()
  const check = () => {
    assertNotEmptied(path)
    const { size } = statSync(path)
    if (size === 0) return
    const reader = new OpenDatabase(path, { readOnly: true })
    try {
      versionOf(reader, path)
      if (size <= CHECKED_BYTES) assertSound(reader, path)
    } finally {
      reader.close()
    }
  }
  try {
    check()
  } catch (error) {
    if (!cutOffBy(error, path)) throw error
    await takeBack(path)
    check()
  }
  const db = new OpenDatabase(path)
  try {
    const settings = [
      `busy_timeout = ${BUSY_TIMEOUT_MS}`,
      // of a file that is empty; before anything is written into it
      'auto_vacuum = INCREMENTAL',
      'journal_mode = WAL',
      `journal_size_limit = ${WAL_BYTES}`,
      `synchronous = ${synchronous}`,
    ]
    for (const setting of settings) db.exec(`PRAGMA ${setting}`)
    migrate(db, path)
    if (!shrinks(db) && statSync(path).size <= REWRITTEN_BYTES) makeShrink(db)
    for (const pragma of pragmas) db.exec(`PRAGMA ${pragma}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Whether the database can give back what is free in it. */
export const shrinks = (db: Database): boolean => db.prepare('PRAGMA auto_vacuum').get().auto_vacuum === INCREMENTAL

/** Writes it anew, as a whole or not at all; it goes on as it was where there is no room for that. */
function makeShrink(db: Database): void {
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
  } catch {
    // The next start tries it again.
  }
}

/** Lets a copy that `VACUUM INTO` makes give back what is free in it. */
export function copiesShrink(db: Database): void {
  if (db.prepare('PRAGMA auto_vacuum').get().auto_vacuum === NEVER) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
}

function assertSound(db: Database, path: string): void {
  const { quick_check: said } = db.prepare('PRAGMA quick_check(1)').get()
  if (said !== 'ok') throw damaged(path, said)
}

/** Everything that can be asked of the database, by name. */
export const operationsOf = (db: Database): Operations => ({
  ...journalOperations(db),
  ...parkedOperations(db),
  ...profileOperations(db),
  ...jobOperations(db),
  ...idempotencyOperations(db),
  ...outboxOperations(db),
  ...notificationOperations(db),
  ...channelOperations(db),
  ...signInOperations(db),
  ...usageOperations(db),
  ...probeOperations(db),
  'versions.of': () => 0,
})
