import type { OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'

/** Keys of the gateway's own, and browsers that subscribed. */
export function channelOperations(db: Database): OperationsOf<'channels'> {
  const addKey = db.prepare('INSERT INTO gateway_keys (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')
  const key = db.prepare('SELECT value FROM gateway_keys WHERE name = ?')
  const saveKey = db.prepare('INSERT OR REPLACE INTO gateway_keys (name, value) VALUES (?, ?)')
  const subscriptions = db.prepare('SELECT id, subscription FROM push_subscriptions ORDER BY n')
  const save = db.prepare(
    `INSERT INTO push_subscriptions (id, subscription) VALUES (?, ?)
     ON CONFLICT (id) DO UPDATE SET subscription = excluded.subscription`,
  )
  const remove = db.prepare('DELETE FROM push_subscriptions WHERE id = ?')

  return {
    'channels.keyOnce'(name, value) {
      addKey.run(name, value)
      return key.get(name).value
    },
    'channels.key': (name) => key.get(name)?.value,
    'channels.saveKey': (name, value) => void saveKey.run(name, value),
    'channels.subscriptions': () => subscriptions.all(),
    'channels.saveSubscription': (id, subscription) => void save.run(id, subscription),
    'channels.removeSubscription': (id) => void remove.run(id),
  }
}
