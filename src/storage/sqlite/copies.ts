import { newId } from '../../lib/new-id.js'
import type { Database, loadDriver } from './driver.js'
import { inTransaction } from './transaction.js'

/** More than is told between a copy and the day on which it is needed. */
const LOST_NUMBERS = 1_000_000

/**
 * Makes a copy fit to go on in the place of its original, which has told more since: the logs in it are others, so that a client that comes
 * with a place in the lost part is told to start over, and no number of an event or a notification is given again.
 */
export function goOnApart(OpenDatabase: Awaited<ReturnType<typeof loadDriver>>, path: string): void {
  const copy = new OpenDatabase(path)
  try {
    // whoever makes the copy syncs it, or removes it when this fails
    copy.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF')
    inTransaction(copy, () => renumber(copy))
  } finally {
    copy.close()
  }
}

function renumber(copy: Database): void {
  const tables = new Set(
    copy
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all()
      .map(({ name }) => name),
  )
  if (tables.has('sessions')) {
    copy.prepare('UPDATE sessions SET reserved_seq = reserved_seq + ?').run(LOST_NUMBERS)
    copy.prepare("UPDATE origins SET origin = json_set(origin, '$.epoch', ?) WHERE json_valid(origin)").run(newId())
  }
  // the ids of those that are kept have the feed's epoch in them, and are known by it
  if (tables.has('notifications'))
    copy.prepare("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'notifications'").run(LOST_NUMBERS)
}
