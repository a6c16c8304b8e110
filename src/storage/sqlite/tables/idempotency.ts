import { REMEMBERED_MS } from '../../../idempotency/store.js'
import type { Database } from '../driver.js'

/** Expired keys that go whenever one is taken: more than come in, so that they cannot pile up. */
const SWEPT_AT_ONCE = 10

export type KeyRow = { state: 'new' | 'in_flight' | 'mismatch' } | { state: 'answered'; answer: string }

/** Answers by key. */
export function idempotencyOperations(db: Database) {
  const sweep = db.prepare(
    'DELETE FROM idempotency_keys WHERE rowid IN (SELECT rowid FROM idempotency_keys WHERE since <= ? ORDER BY since LIMIT ?)',
  )
  const find = db.prepare('SELECT fingerprint, since, answer FROM idempotency_keys WHERE key = ?')
  const take = db.prepare(
    'INSERT OR REPLACE INTO idempotency_keys (key, fingerprint, since, answer) VALUES (?, ?, ?, NULL)',
  )
  const answer = db.prepare('UPDATE idempotency_keys SET answer = ? WHERE key = ?')
  const release = db.prepare('DELETE FROM idempotency_keys WHERE key = ?')

  return {
    'idempotency.begin'(key: string, fingerprint: string, now: number): KeyRow {
      const expired = now - REMEMBERED_MS
      sweep.run(expired, SWEPT_AT_ONCE)
      const known = find.get(key)
      if (!known || known.since <= expired) {
        take.run(key, fingerprint, now)
        return { state: 'new' }
      }
      if (known.fingerprint !== fingerprint) return { state: 'mismatch' }
      return known.answer === null ? { state: 'in_flight' } : { state: 'answered', answer: known.answer }
    },
    'idempotency.complete'(key: string, text: string): void {
      answer.run(text, key)
    },
    'idempotency.release'(key: string): void {
      release.run(key)
    },
  }
}

/** A crash has ended the requests that had taken a key and were not answered yet. */
export const dropUnanswered = (db: Database): void => db.exec('DELETE FROM idempotency_keys WHERE answer IS NULL')
