import type { Database } from '../driver.js'

/** Keys of the gateway's own, and browsers that subscribed. */
export function channelOperations(db: Database) {
  const addKey = db.prepare('INSERT INTO gateway_keys (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')
  const key = db.prepare('SELECT value FROM gateway_keys WHERE name = ?')
  const saveKey = db.prepare('INSERT OR REPLACE INTO gateway_keys (name, value) VALUES (?, ?)')
  const subscriptions = db.prepare('SELECT subscription FROM push_subscriptions ORDER BY n')
  const save = db.prepare(
    `INSERT INTO push_subscriptions (id, subscription) VALUES (?, ?)
     ON CONFLICT (id) DO UPDATE SET subscription = excluded.subscription`,
  )
  const remove = db.prepare('DELETE FROM push_subscriptions WHERE id = ?')

  return {
    'channels.keyOnce'(name: string, value: string): string {
      addKey.run(name, value)
      return key.get(name).value
    },
    'channels.key'(name: string): string | undefined {
      return key.get(name)?.value
    },
    'channels.saveKey'(name: string, value: string): void {
      saveKey.run(name, value)
    },
    'channels.subscriptions'(): string[] {
      return subscriptions.all().map(({ subscription }) => subscription)
    },
    'channels.saveSubscription'(id: string, subscription: string): void {
      save.run(id, subscription)
    },
    'channels.removeSubscription'(id: string): void {
      remove.run(id)
    },
  }
}
