import { StorageError } from '../storage.js'
import { keptObject } from './json-columns.js'

/** Says whose row of which table cannot be read, and what helps. */
export const unreadable = (what: string, id: string | number, table: string): string =>
  `${what} ${id} cannot be read: the text of its row in the table ${table} of the database is damaged. The row was left in place: ` +
  'mend it, delete it, or restore a backup; `session-gateway doctor` looks for more of them'

/** @throws StorageError that says whose JSON cannot be read, and of which table it is */
export function parsed<T>(text: string, what: string, id: string | number, table: string): T {
  const found = keptObject<T>(text, table)
  if (found === undefined) throw new StorageError('STORAGE_UNREADABLE', unreadable(what, id, table))
  return found
}
