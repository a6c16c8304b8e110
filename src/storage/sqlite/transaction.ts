import type { Database } from './driver.js'

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
  try {
    db.exec('ROLLBACK')
  } catch {
    // After some errors SQLite has done it already, and says that there is nothing to roll back.
  }
}
