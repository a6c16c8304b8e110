import type { OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'
import { keyKeeper } from './idempotency.js'

/** Managed profiles. */
export function profileOperations(db: Database): OperationsOf<'profiles'> {
  const list = db.prepare('SELECT profile FROM profiles ORDER BY name')
  const save = db.prepare('INSERT OR REPLACE INTO profiles (name, profile) VALUES (?, ?)')
  const keepKey = keyKeeper(db)
  const remove = db.prepare('DELETE FROM profiles WHERE name = ?')

  return {
    'profiles.list': () => list.all().map(({ profile }) => profile),
    'profiles.save'(name, profile, key) {
      save.run(name, profile)
      if (key) keepKey(key)
    },
    'profiles.delete': (name) => void remove.run(name),
  }
}
