import type { EndedQuery } from '../../../sessions/kept/journal.js'
import type { OperationsOf } from '../../sql/operations.js'
import type { Database } from '../driver.js'

const MAX_PAGE_CHARS = 1024 * 1024
const ENGINES = ['cli', 'provider']
const STATUSES = ['closed', 'failed']
const STAYS = `NOT EXISTS (SELECT 1 FROM news WHERE session = sessions.key AND news.key = 'removal')`

type EndedOperations = Pick<
  OperationsOf<'journal'>,
  'journal.ended' | 'journal.endedFirst' | 'journal.endedTotals' | 'journal.endedExecutions'
>

/** Sessions that have ended. @param columns of a row of `sessions` */
export function endedOperations(db: Database, columns: string): EndedOperations {
  const isWanted = `ended = ? AND place < ? AND ${STAYS}`
  const newest = (of: string) =>
    db.prepare(`SELECT key, place FROM sessions WHERE ${of} engine = ? AND ${isWanted} ORDER BY place DESC LIMIT ?`)
  const newestOf = newest('')
  const newestUnder = newest('profile = ? AND')
  const at = db.prepare(`SELECT ${columns}, place FROM sessions WHERE key = ?`)
  const first = db.prepare(
    'SELECT id, ended_at AS endedAt FROM sessions WHERE ended IS NOT NULL ORDER BY ended_at, key LIMIT ?',
  )
  const totals = db.prepare(
    'SELECT count(*) AS count, coalesce(max(place), 0) AS lastOrder FROM sessions WHERE ended IS NOT NULL',
  )
  const withNews = db.prepare(
    'SELECT count(DISTINCT session) AS count FROM news WHERE (SELECT ended FROM sessions WHERE key = session) IS NOT NULL',
  )
  const executions = db.prepare(
    `SELECT key, id, executions FROM sessions WHERE executions IS NOT NULL AND key > ? AND ${STAYS} ORDER BY key LIMIT ?`,
  )

  /** Of each engine, status and profile the newest: an index gives them however many others there are. */
  const places = ({ status, engine, profiles, before = Number.MAX_SAFE_INTEGER, limit }: EndedQuery) => {
    const lists = (engine ? [engine] : ENGINES).flatMap((engine) =>
      (status ? [status] : STATUSES).flatMap((status) =>
        profiles
          ? profiles.map((profile) => newestUnder.all(profile, engine, status, before, limit))
          : [newestOf.all(engine, status, before, limit)],
      ),
    )
    const found: { key: number; place: number }[] = lists.flat()
    return found.sort((a, b) => b.place - a.place).slice(0, limit)
  }

  return {
    'journal.ended'(query) {
      const found = places(query)
      const rows = []
      for (let chars = 0; rows.length < found.length && chars < MAX_PAGE_CHARS; ) {
        const row = at.get(found[rows.length]!.key)
        rows.push(row)
        chars += row.state.length
      }
      return { rows, isLast: rows.length === found.length && found.length < query.limit }
    },
    'journal.endedFirst': (limit) => first.all(limit),
    'journal.endedTotals'() {
      const { count, lastOrder } = totals.get()
      return { count: count - withNews.get().count, lastOrder }
    },
    'journal.endedExecutions': (afterKey, limit) => executions.all(afterKey, limit),
  }
}
