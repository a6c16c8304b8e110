import { REMEMBERED_MS } from '../../../idempotency/store.js'
import type { OperationsOf } from '../../sql/operations.js'
import { KEYS_SWEPT_AT_ONCE, type KeptKeyRow } from '../../sql/rows.js'
import type { Database } from '../driver.js'

/** Keeps a key, in the transaction of what is made. */
export function keyKeeper(db: Database): (row: KeptKeyRow) => void {
  const keep = db.prepare('INSERT OR REPLACE INTO idempotency_keys (key, fingerprint, since, made) VALUES (?, ?, ?, ?)')
  return ({ key, fingerprint, since, made }) => {
    keep.run(key, fingerprint, since, made)
  }
}

/** Answers by key. */
export function idempotencyOperations(db: Database): OperationsOf<'idempotency'> {
  const sweep = db.prepare(
    'DELETE FROM idempotency_keys WHERE rowid IN (SELECT rowid FROM idempotency_keys WHERE since <= ? ORDER BY since LIMIT ?)',
  )
  const find = db.prepare(
    'SELECT fingerprint, answer FROM idempotency_keys WHERE key = ? AND since > ? AND answer IS NOT NULL',
  )
  const complete = db.prepare(
    'INSERT OR REPLACE INTO idempotency_keys (key, fingerprint, since, answer) VALUES (?, ?, ?, ?)',
  )
  const release = db.prepare('DELETE FROM idempotency_keys WHERE key = ?')
  const left = db.prepare('SELECT key, fingerprint, made, since FROM idempotency_keys WHERE answer IS NULL')

  return {
    'idempotency.begin': (key, _fingerprint, now) => find.get(key, now - REMEMBERED_MS),
    'idempotency.complete'(key, fingerprint, since, answer, now) {
      sweep.run(now - REMEMBERED_MS, KEYS_SWEPT_AT_ONCE)
      complete.run(key, fingerprint, since, answer)
    },
    'idempotency.release': (key) => void release.run(key),
    'idempotency.keep': keyKeeper(db),
    'idempotency.left': () => left.all(),
  }
}

/** A crash has ended the requests that had taken a key and had made nothing yet. */
export const dropUnanswered = (db: Database): void =>
  db.exec('DELETE FROM idempotency_keys WHERE answer IS NULL AND made IS NULL')
