import { executionsOf, type JournaledState } from '../../sessions/kept/journal.js'
import { keptObject } from '../sql/json-columns.js'
import { listedColumns } from '../sql/rows.js'
import type { Link } from './link.js'
import { listAll, unlistedAsked } from './tables/listed-sessions.js'

const AT_ONCE = 200

/** Gives sessions that were written, or copied, without them the columns by which several processes find them. */
export async function listUnlisted(link: Link): Promise<void> {
  for (let last = 0; ; ) {
    const [rows] = await link.run([unlistedAsked(last, AT_ONCE)])
    if (rows!.length === 0) return
    last = rows!.at(-1)!.key as number
    const listed = rows!.flatMap(({ key, state }) => {
      // undefined: it cannot be read, and whoever reads the session says so
      const found = keptObject<JournaledState>(state as string, 'sessions')
      return found ? [{ key: key as number, columns: listedColumns(found), executions: executionsOf(found) }] : []
    })
    if (listed.length > 0) await link.run(listAll(listed))
  }
}
