import type { Database } from './driver.js'

const observers = new WeakMap<Database, () => void>()

/** Has whoever remembers what was written told that it was not. */
export function onRollback(db: Database, forget: () => void): void {
  observers.set(db, forget)
}

/** @throws whatever `work` or the commit throws; nothing is written then */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.exec('BEGIN')
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
  observers.get(db)?.()
  try {
    db.exec('ROLLBACK')
  } catch {
    // After some errors SQLite has done it already, and says that there is nothing to roll back.
  }
}
