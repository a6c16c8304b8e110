import type { OperationsOf } from '../../sql/operations.js'
import type { RestColumns, SessionWrite } from '../../sql/rows.js'
import type { Database } from '../driver.js'
import { Refusal } from '../failures.js'
import { atRestOperations } from './at-rest.js'
import { eventReader, eventWriter } from './events.js'
import { KnownSessions } from './known-sessions.js'
import { ridingKeeper } from './riding.js'

const NONE: ReadonlySet<string> = new Set()
/** Events that go with the session that is removed; more of them would make its transaction a long one, and are swept later. */
const FEW_EVENTS = 10

/** Sessions with their events. */
export function journalOperations(db: Database): OperationsOf<'journal'> {
  const columns = `key, id, profile, generation, reserved_seq AS reservedSeq, state, asleep,
    coalesce((SELECT max(seq) FROM events WHERE session = key), 0) AS lastSeq`
  const insert = db.prepare(
    'INSERT INTO sessions (id, profile, generation, reserved_seq, state) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
  )
  const insertOrigin = db.prepare('INSERT INTO origins (session, origin) VALUES (?, ?)')
  const update = db.prepare('UPDATE sessions SET reserved_seq = ?, state = coalesce(?, state) WHERE key = ?')
  const saveSnapshot = db.prepare('INSERT OR REPLACE INTO snapshots (session, snapshot) VALUES (?, ?)')
  const page = db.prepare(`SELECT ${columns} FROM sessions WHERE key > ? ORDER BY key LIMIT ?`)
  const rest = db.prepare(
    `UPDATE sessions SET reserved_seq = ?, state = ?, ended = ?, ended_at = ?, asleep = ?, wakes_at = ?, sdk_session = ?, engine = ?,
       place = coalesce(?, key) WHERE key = ?`,
  )
  const wake = db.prepare(
    'UPDATE sessions SET reserved_seq = ?, state = ?, asleep = NULL, wakes_at = NULL, sdk_session = NULL WHERE key = ?',
  )
  // an id that another session has stays that one's, unless that is on its way out
  const addExecution = db.prepare(
    `INSERT INTO executions (id, session) VALUES (?, ?) ON CONFLICT DO UPDATE SET session = excluded.session
     WHERE EXISTS (SELECT 1 FROM news WHERE news.session = executions.session AND key = 'removal')`,
  )
  const awake = db.prepare(
    `SELECT ${columns} FROM sessions WHERE key IN (
       SELECT key FROM (SELECT key FROM sessions WHERE ended IS NULL AND asleep IS NULL AND key > ?1 ORDER BY key LIMIT ?2)
       UNION SELECT session FROM (SELECT DISTINCT session FROM news WHERE session > ?1 ORDER BY session LIMIT ?2)
     ) ORDER BY key LIMIT ?2`,
  )
  const whole = db.prepare(
    `SELECT ${columns}, origin, snapshot FROM sessions
     JOIN origins ON origins.session = key LEFT JOIN snapshots ON snapshots.session = key WHERE id = ?`,
  )
  const removals = ['sessions WHERE key', 'origins WHERE session', 'snapshots WHERE session', 'news WHERE session'].map(
    (where) => db.prepare(`DELETE FROM ${where} = ?`),
  )
  const removeExecutions = db.prepare('DELETE FROM executions WHERE session = ?')
  const insertNews = db.prepare('INSERT INTO news (session, key, news) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
  const newsOf = db.prepare('SELECT session, key, news FROM news WHERE session BETWEEN ? AND ? ORDER BY n')
  const takeNews = db.prepare('DELETE FROM news WHERE session = ? AND key = ?')
  const removeEvents = db.prepare('DELETE FROM events WHERE session = ?')
  const remember = db.prepare('INSERT INTO removed_sessions (session) VALUES (?)')
  const removed = db.prepare('SELECT session FROM removed_sessions LIMIT 1')
  // a range of numbers: looking for so many rows took three times as long
  const sweep = db.prepare(
    'DELETE FROM events WHERE session = ?1 AND seq < (SELECT min(seq) FROM events WHERE session = ?1) + ?2',
  )
  const hasEvents = db.prepare('SELECT 1 FROM events WHERE session = ? LIMIT 1')
  const swept = db.prepare('DELETE FROM removed_sessions WHERE session = ?')

  const readEvents = eventReader(db)
  const writeEvents = eventWriter(db)
  const keepAlong = ridingKeeper(db)
  const sessions = new KnownSessions(db)

  /** @returns its number */
  const born = ({ id, origin, state }: SessionWrite, reserved: number): number => {
    const { profile, generation, text } = origin!
    const { changes, lastInsertRowid } = insert.run(id, profile, generation, reserved, state!)
    if (changes === 0) throw new Refusal(`There is a session ${id} already.`)
    const key = Number(lastInsertRowid)
    insertOrigin.run(key, text)
    return key
  }

  return {
    'journal.write'(write) {
      const { id, origin, state, snapshot, executions = [], reservedSeq, seqs, texts, taken = [] } = write
      // whether the first write of one is of one that is there already says the write itself
      const known = origin && state !== undefined ? sessions.recent(id) : sessions.get(id)
      if (!known && !(origin && state !== undefined))
        throw new Refusal(`There is no session ${id}; its first write has an origin and a state.`)
      if (known && origin) throw new Refusal(`There is a session ${id} already.`)
      const lastSeq = assertRising(id, seqs, known?.lastSeq ?? 0)

      const reserved = Math.max(known?.reservedSeq ?? 0, reservedSeq, seqs.at(-1) ?? 0)
      const key = known?.key ?? born(write, reserved)
      if (write.rest) rest.run(reserved, state!, ...restValues(write.rest), key)
      else if (known?.sleeps && state !== undefined) wake.run(reserved, state, key)
      else if (known && (state !== undefined || reserved !== known.reservedSeq))
        update.run(reserved, state ?? null, key)
      const added = executions.filter((one) => !known?.executions?.has(one))
      for (const one of added) addExecution.run(one, key)
      if (snapshot !== undefined) saveSnapshot.run(key, snapshot)
      writeEvents(key, seqs, texts)
      for (const one of taken) takeNews.run(key, one)
      keepAlong(write)
      const sleeps = state === undefined ? (known?.sleeps ?? false) : typeof write.rest?.asleep === 'string'
      const all = added.length > 0 ? new Set(executions) : known ? known.executions : NONE
      sessions.set(id, { key, reservedSeq: reserved, lastSeq, sleeps, executions: all })
    },
    'journal.deposit'(id, news, keys) {
      const session = sessions.get(id)?.key
      if (session === undefined) return false
      for (const { key, news: text } of news) insertNews.run(session, key, text)
      keepAlong({ keys })
      return true
    },
    'journal.page': (afterKey, limit) => page.all(afterKey, limit),
    'journal.awake': (afterKey, limit) => awake.all(afterKey, limit),
    ...atRestOperations(db, columns),
    'journal.news': (from, to) => newsOf.all(from, to),
    'journal.get'(id) {
      const row = whole.get(id)
      return row && { row, news: newsOf.all(row.key, row.key) }
    },
    'journal.read'(id, afterSeq, untilSeq, maxBytes) {
      const key = sessions.get(id)?.key
      return key === undefined ? { seqs: [], sizes: [], pieces: [] } : readEvents(key, afterSeq, untilSeq, maxBytes)
    },
    'journal.remove'(id, deliveries, notifications, usage) {
      const known = sessions.get(id)
      if (!known) return
      const { key } = known
      sessions.forget(id)
      for (const removal of removals) removal.run(key)
      if (known.executions !== NONE) removeExecutions.run(key)
      if (known.lastSeq > FEW_EVENTS) remember.run(key)
      else removeEvents.run(key)
      keepAlong({ deliveries, notifications, usage })
    },
    'journal.sweep'(limit) {
      for (let left = limit; left > 0; ) {
        const session: number | undefined = removed.get()?.session
        if (session === undefined) return false
        const deleted = Number(sweep.run(session, left).changes)
        if (!hasEvents.get(session)) swept.run(session)
        left -= deleted + 1
      }
      return true
    },
  }
}

const restValues = ({ ended, endedAt, asleep, wakesAt, sdkSession, engine, place }: RestColumns) =>
  [ended, endedAt, asleep, wakesAt, sdkSession, engine, place] as const

/** @returns the last one */
function assertRising(id: string, seqs: readonly number[], after: number): number {
  let last = after
  for (const seq of seqs) {
    if (seq <= last) throw new Refusal(`Event ${seq} of session ${id} does not come after event ${last}.`)
    last = seq
  }
  return last
}

/** Parked sessions. */
export function parkedOperations(db: Database): OperationsOf<'parked'> {
  const save = db.prepare(
    'INSERT INTO parked (id, record) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record',
  )
  const find = db.prepare('SELECT record FROM parked WHERE id = ?')
  const page = db.prepare('SELECT n, id, record FROM parked WHERE n > ? ORDER BY n LIMIT ?')
  const remove = db.prepare('DELETE FROM parked WHERE id = ?')

  return {
    'parked.save': (id, record) => void save.run(id, record),
    'parked.get': (id) => find.get(id)?.record,
    'parked.page': (after, limit) => page.all(after, limit),
    'parked.delete': (id) => void remove.run(id),
  }
}
