import type { Database } from '../driver.js'

const ATTEMPTS_PER_LANE = 100
/** Of all lanes together; the oldest go first. */
const MAX_ATTEMPTS = 1_000_000

export interface DeliveryRow {
  n: number
  id: string
  lane: string
  delivery: string
}

/** Deliveries that wait, and the attempts that were made. */
export function outboxOperations(db: Database) {
  const add = db.prepare(
    'INSERT INTO deliveries (lane, id, delivery) VALUES (?, ?, ?) ON CONFLICT (lane, id) DO NOTHING',
  )
  const remove = db.prepare('DELETE FROM deliveries WHERE lane = ? AND id = ?')
  const page = db.prepare('SELECT n, id, lane, delivery FROM deliveries WHERE n > ? ORDER BY n LIMIT ?')
  const log = db.prepare('INSERT INTO delivery_attempts (lane, attempt) VALUES (?, ?)')
  const trim = db.prepare(
    `DELETE FROM delivery_attempts WHERE lane = ?1 AND n <=
     (SELECT n FROM delivery_attempts WHERE lane = ?1 ORDER BY n DESC LIMIT 1 OFFSET ${ATTEMPTS_PER_LANE})`,
  )
  const trimAll = db.prepare('DELETE FROM delivery_attempts WHERE n <= ?')
  const attempts = db.prepare('SELECT attempt FROM delivery_attempts WHERE lane = ? ORDER BY n DESC')
  const forget = db.prepare('DELETE FROM delivery_attempts WHERE lane = ?')

  return {
    'outbox.add'(lane: string, id: string, delivery: string): void {
      add.run(lane, id, delivery)
    },
    'outbox.remove'(lane: string, id: string): void {
      remove.run(lane, id)
    },
    'outbox.page'(after: number, limit: number): DeliveryRow[] {
      return page.all(after, limit)
    },
    'outbox.log'(lane: string, attempt: string): void {
      const { lastInsertRowid } = log.run(lane, attempt)
      trim.run(lane)
      trimAll.run(Number(lastInsertRowid) - MAX_ATTEMPTS)
    },
    'outbox.attempts'(lane: string): string[] {
      return attempts.all(lane).map(({ attempt }) => attempt)
    },
    'outbox.forget'(lane: string): void {
      forget.run(lane)
    },
  }
}
