import type { Database } from './driver.js'
import { isBusy } from './failures.js'

/** So long SQLite waits for whoever else writes. */
export const BUSY_TIMEOUT_MS = 5_000

const observers = new WeakMap<Database, (() => void)[]>()

/** Has whoever remembers what was written told that it was not. */
export function onRollback(db: Database, forget: () => void): void {
  observers.set(db, [...(observers.get(db) ?? []), forget])
}

/**
 * @param work done once more when another program writes: SQLite refuses at once who has read before, and lets who begins by asking to
 * write wait
 * @throws whatever `work` or the commit throws; nothing is written then
 */
export function inTransaction<T>(db: Database, work: () => T): T {
  const since = performance.now()
  try {
    return begun(db, 'BEGIN', work)
  } catch (error) {
    const hasWaited = performance.now() - since > BUSY_TIMEOUT_MS / 2
    if (!isBusy(error) || hasWaited) throw error
  }
  return begun(db, 'BEGIN IMMEDIATE', work)
}

function begun<T>(db: Database, begin: string, work: () => T): T {
  db.exec(begin)
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    rollBack(db)
    throw error
  }
}

function rollBack(db: Database): void {
  for (const forget of observers.get(db) ?? []) forget()
  try {
    db.exec('ROLLBACK')
  } catch {
    // After some errors SQLite has done it already, and says that there is nothing to roll back.
  }
}
