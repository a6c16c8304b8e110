import { ATTEMPTS_PER_LANE, MAX_ATTEMPTS, MAX_GONE } from '../../../webhooks/outbox.js'
import type { OperationsOf } from '../../sql/operations.js'
import type { DeliveryValues } from '../../sql/rows.js'
import type { Database } from '../driver.js'

/** Keeps a delivery, in the transaction of what it tells of. */
export function deliveryKeeper(db: Database): (values: DeliveryValues) => void {
  const add = db.prepare(
    'INSERT INTO deliveries (lane, id, delivery) VALUES (?, ?, ?) ON CONFLICT (lane, id) DO NOTHING',
  )
  return ({ lane, id, delivery }) => {
    add.run(lane, id, delivery)
  }
}

/** Deliveries that wait, and the attempts that were made. */
export function outboxOperations(db: Database): OperationsOf<'outbox'> {
  const change = db.prepare('UPDATE deliveries SET delivery = ? WHERE lane = ? AND id = ?')
  const remove = db.prepare('DELETE FROM deliveries WHERE lane = ? AND id = ?')
  const page = db.prepare('SELECT n, id, lane, delivery FROM deliveries WHERE n > ? ORDER BY n LIMIT ?')
  const places = db.prepare('SELECT n FROM deliveries WHERE lane IN (SELECT value FROM json_each(?)) ORDER BY n')
  const at = db.prepare(
    'SELECT n, id, lane, delivery FROM deliveries WHERE n IN (SELECT value FROM json_each(?)) ORDER BY n',
  )
  const log = db.prepare('INSERT INTO delivery_attempts (lane, attempt) VALUES (?, ?)')
  const trim = db.prepare(
    `DELETE FROM delivery_attempts WHERE lane = ?1 AND n <=
     (SELECT n FROM delivery_attempts WHERE lane = ?1 ORDER BY n DESC LIMIT 1 OFFSET ${ATTEMPTS_PER_LANE})`,
  )
  const trimAll = db.prepare('DELETE FROM delivery_attempts WHERE n <= ?')
  const attempts = db.prepare('SELECT attempt FROM delivery_attempts WHERE lane = ? ORDER BY n DESC')
  const forget = db.prepare('DELETE FROM delivery_attempts WHERE lane = ?')
  const oldest = db.prepare(
    `SELECT n, instr(lane, ' ') > 0 AS passes, coalesce(CASE WHEN json_valid(attempt) THEN attempt ->> 'at' < ?2 END, 2) AS old
     FROM delivery_attempts WHERE n > ?1 ORDER BY n LIMIT ?3`,
  )
  const drop = db.prepare('DELETE FROM delivery_attempts WHERE n = ?')
  const forgetGone = db.prepare('DELETE FROM gone_targets WHERE key = ?')
  const rememberGone = db.prepare('INSERT INTO gone_targets (key) VALUES (?) ON CONFLICT (key) DO NOTHING')
  const trimGone = db.prepare(
    `DELETE FROM gone_targets WHERE n <= (SELECT n FROM gone_targets ORDER BY n DESC LIMIT 1 OFFSET ${MAX_GONE})`,
  )
  const gone = db.prepare('SELECT key FROM gone_targets ORDER BY n')

  return {
    'outbox.add': deliveryKeeper(db),
    'outbox.change': ({ lane, id, delivery }) => void change.run(delivery, lane, id),
    'outbox.remove': (lane, id) => void remove.run(lane, id),
    'outbox.page': (after, limit) => page.all(after, limit),
    'outbox.places': (lanes) => places.all(JSON.stringify(lanes)).map(({ n }) => n),
    'outbox.at': (numbers) => at.all(JSON.stringify(numbers)),
    'outbox.isHeldUp': () => false,
    'outbox.log'(lane, attempt) {
      const { lastInsertRowid } = log.run(lane, attempt)
      trim.run(lane)
      trimAll.run(Number(lastInsertRowid) - MAX_ATTEMPTS)
    },
    'outbox.attempts': (lane) => attempts.all(lane).map(({ attempt }) => attempt),
    'outbox.forget'(lane) {
      forget.run(lane)
      forgetGone.run(lane)
    },
    'outbox.prune'(after, before, limit) {
      const attempts = oldest.all(after, before, limit)
      // one that is damaged stays, and holds up nothing
      for (const { n, passes, old } of attempts) if (passes && old === 1) drop.run(n)
      return attempts.map(({ n, old }) => ({ n, isOld: old !== 0 }))
    },
    'outbox.rememberGone'(key) {
      rememberGone.run(key)
      trimGone.run()
    },
    'outbox.gone': () => gone.all().map(({ key }) => key),
  }
}
