import type { SessionJournal } from '../../sessions/kept/journal.js'
import { sessionOf } from '../sql/session-journal.js'
import { listed } from '../sql/stores.js'
import type { CallPostgres, ListedRow } from './operations.js'

/** Sessions of all nodes, as the journal gives them. */
export const listedSessions =
  (call: CallPostgres): SessionJournal['listed'] & {} =>
  async (query, onUnreadable = () => {}) => {
    const { rows, isLast } = await call('journal.listed', query)
    const sessions = await listed(
      async (last?: ListedRow) => (last ? [] : rows),
      (row) => ({
        ...{ ...sessionOf(row, []), place: row.place },
        ...(row.owner !== null && { owner: row.owner }),
      }),
      onUnreadable,
    )
    return { sessions, next: isLast ? undefined : rows.at(-1)!.place }
  }
