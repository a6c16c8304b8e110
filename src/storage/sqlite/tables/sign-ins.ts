import type { OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'

/** Browsers that are signed in to the console. */
export function signInOperations(db: Database): OperationsOf<'signIns'> {
  const list = db.prepare('SELECT id, sign_in AS signIn FROM sign_ins ORDER BY n')
  const save = db.prepare(
    'INSERT INTO sign_ins (id, sign_in) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET sign_in = excluded.sign_in',
  )
  const renew = db.prepare('UPDATE sign_ins SET sign_in = ? WHERE id = ?')
  const remove = db.prepare('DELETE FROM sign_ins WHERE id = ?')

  return {
    'signIns.list': () => list.all(),
    'signIns.save': (id, signIn) => void save.run(id, signIn),
    'signIns.renew': (id, signIn) => void renew.run(signIn, id),
    'signIns.remove': (id) => void remove.run(id),
  }
}
