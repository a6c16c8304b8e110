import type { Operations, OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'
import { keyKeeper } from './idempotency.js'

/** Managed profiles. */
export function profileOperations(db: Database): OperationsOf<'profiles'> {
  const list = db.prepare('SELECT name, profile FROM profiles ORDER BY name')
  const save = db.prepare('INSERT OR REPLACE INTO profiles (name, profile) VALUES (?, ?)')
  const keepKey = keyKeeper(db)
  const find = db.prepare('SELECT profile FROM profiles WHERE name = ?')
  const remove = db.prepare('DELETE FROM profiles WHERE name = ?')

  const saveProfile: Operations['profiles.save'] = (name, profile, key) => {
    save.run(name, profile)
    if (key) keepKey(key)
  }
  return {
    'profiles.list': () => list.all(),
    'profiles.save': saveProfile,
    'profiles.saveInstead'(name, profile, before, key) {
      if ((find.get(name)?.profile ?? null) !== before) return false
      saveProfile(name, profile, key)
      return true
    },
    'profiles.delete': (name) => void remove.run(name),
  }
}
