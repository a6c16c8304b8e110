import type { KeptNotification, NotificationPage } from '../../../notifications/store.js'
import type { OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'

/** Rows that are read at once, where they may be large. */
const READ_AT_ONCE = 25

/** Keeps a notification, in the transaction of the event that it tells of. */
export function notificationKeeper(db: Database): (kept: KeptNotification) => void {
  const add = db.prepare(
    'INSERT INTO notifications (n, type, session, profile, ts, notification) VALUES (?, ?, ?, ?, ?, ?)',
  )
  return ({ number, type, sessionId, profile, ts, json }) => {
    add.run(number, type, sessionId, profile, ts, json)
  }
}

/** The feed of notifications. */
export function notificationOperations(db: Database): OperationsOf<'notifications'> {
  const known = db.prepare('SELECT epoch FROM feed')
  const found = db.prepare('INSERT INTO feed (epoch) VALUES (?)')
  // what was given once is known although it is forgotten
  const last = db.prepare("SELECT coalesce(max(seq), 0) AS number FROM sqlite_sequence WHERE name = 'notifications'")
  const columns = 'n AS number, type, session AS sessionId, profile, ts, notification AS json'
  const wanted = `n > ?1 AND n <= ?2 AND ts >= ?3
    AND (?4 IS NULL OR type IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR profile IN (SELECT value FROM json_each(?5)))`
  const first = db.prepare(`SELECT ${columns} FROM notifications WHERE ${wanted} ORDER BY n LIMIT ?6`)
  const newest = db.prepare(`SELECT ${columns} FROM notifications WHERE ${wanted} ORDER BY n DESC LIMIT ?6`)
  const oldest = db.prepare('SELECT min(n) AS number FROM notifications WHERE ts >= ?')
  const forget = (which: string) => {
    const some = db.prepare(
      `DELETE FROM notifications WHERE n IN (SELECT n FROM notifications WHERE ${which} LIMIT ?2)`,
    )
    return (given: number, limit: number): boolean => Number(some.run(given, limit).changes) === limit
  }
  const pruneByCount = forget('n <= ?1')
  const keepNewest = forget('n <= (SELECT n FROM notifications ORDER BY n DESC LIMIT 1 OFFSET ?1)')
  const pruneByAge = forget('ts < ?1')

  return {
    'notifications.open'(epoch) {
      const row: { epoch: string } | undefined = known.get()
      if (!row) found.run(epoch)
      return { epoch: row?.epoch ?? epoch, lastNumber: last.get().number }
    },
    'notifications.add': notificationKeeper(db),
    'notifications.read'(range, page) {
      const { types, profiles, since } = range
      const kept: KeptNotification[] = []
      const named = [types, profiles].map((names) => (names ? JSON.stringify(names) : null))
      const statement = page.newest ? newest : first
      let { after, until } = range
      for (let bytes = 0; kept.length < page.limit; ) {
        const asked = Math.min(page.limit - kept.length, READ_AT_ONCE)
        const rows: KeptNotification[] = statement.all(after, until, since, ...named, asked)
        for (const row of rows) {
          bytes += Buffer.byteLength(row.json)
          if (kept.length > 0 && bytes > page.maxBytes) return inOrder(kept, page)
          kept.push(row)
        }
        if (rows.length < asked) break
        if (page.newest) until = rows.at(-1)!.number - 1
        else after = rows.at(-1)!.number
      }
      return inOrder(kept, page)
    },
    'notifications.oldest': (since) => oldest.get(since).number ?? undefined,
    'notifications.placeOf': (number) => ({ place: number, forgotten: 0 }),
    'notifications.keepNewest': keepNewest,
    'notifications.prune'(through, before, limit) {
      const isMore = pruneByCount(through, limit)
      return pruneByAge(before, limit) || isMore
    },
  }
}

const inOrder = (kept: KeptNotification[], { newest }: NotificationPage): KeptNotification[] =>
  newest ? kept.reverse() : kept
