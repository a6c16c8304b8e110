import { newId } from '../../lib/new-id.js'
import type { Database, loadDriver } from './driver.js'
import { inTransaction } from './transaction.js'

/** More than a session tells between a copy and the day on which it is needed. */
const LOST_SEQS = 1_000_000

/**
 * Makes a copy fit to go on in the place of its original, which has told more since: the logs in it are others, so that a client that comes
 * with a place in the lost part is told to start over, and no event of a session gets a number that another one had.
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
    copy.prepare('UPDATE sessions SET reserved_seq = reserved_seq + ?').run(LOST_SEQS)
    copy.prepare("UPDATE origins SET origin = json_set(origin, '$.epoch', ?) WHERE json_valid(origin)").run(newId())
  }
  if (tables.has('feed')) {
    const epoch = newId()
    copy.prepare('UPDATE feed SET epoch = ?').run(epoch)
    // an id is the feed's epoch, a colon and a number, and those that are kept have theirs in what is told of them
    copy
      .prepare(
        `UPDATE notifications SET notification =
          json_set(notification, '$.id', ? || substr(notification ->> '$.id', instr(notification ->> '$.id', ':')))
          WHERE CASE WHEN json_valid(notification) THEN json_type(notification, '$.id') = 'text' END`,
      )
      .run(epoch)
  }
}
