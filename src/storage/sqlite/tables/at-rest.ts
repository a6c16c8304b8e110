import type { AtRestQuery, RestStatus } from '../../../sessions/kept/journal.js'
import type { OperationsOf } from '../../sql/operations.js'
import { MAX_PAGE_CHARS } from '../../sql/rows.js'
import type { Database } from '../driver.js'

const ENGINES = ['cli', 'provider']
/** The column that has it. */
const STATUSES = { closed: 'ended', failed: 'ended', idle: 'asleep', parked: 'asleep' } as const
const ALL = Object.keys(STATUSES) as RestStatus[]
const STAYS = `NOT EXISTS (SELECT 1 FROM news WHERE session = sessions.key AND news.key = 'removal')`

type AtRestOperations = Pick<
  OperationsOf<'journal'>,
  | 'journal.atRest'
  | 'journal.endedFirst'
  | 'journal.dueFirst'
  | 'journal.restTotals'
  | 'journal.sessionOf'
  | 'journal.continues'
>

/** Sessions at rest. @param columns of a row of `sessions` */
export function atRestOperations(db: Database, columns: string): AtRestOperations {
  const newest = (of: string) => {
    const by = (column: string) =>
      db.prepare(
        `SELECT key, place FROM sessions WHERE ${of} engine = ? AND ${column} = ? AND place < ? AND ${STAYS}
         ORDER BY place DESC LIMIT ?`,
      )
    return { ended: by('ended'), asleep: by('asleep') }
  }
  const newestOf = newest('')
  const newestUnder = newest('profile = ? AND')
  const at = db.prepare(`SELECT ${columns}, place FROM sessions WHERE key = ?`)
  const first = db.prepare(
    'SELECT id, ended_at AS endedAt FROM sessions WHERE ended_at IS NOT NULL ORDER BY ended_at, key LIMIT ?',
  )
  const due = db.prepare(
    `SELECT id, wakes_at AS wakesAt FROM sessions WHERE wakes_at IS NOT NULL AND (wakes_at, id) > (?, ?)
     ORDER BY wakes_at, id LIMIT ?`,
  )
  const totals = (['ended', 'asleep'] as const).map((column) =>
    db.prepare(
      `SELECT ${column} AS status, count(*) AS count, max(place) AS last FROM sessions WHERE ${column} IS NOT NULL GROUP BY ${column}`,
    ),
  )
  const withNews = db.prepare(
    `SELECT coalesce(ended, asleep) AS status, count(*) AS count FROM sessions
     WHERE key IN (SELECT session FROM news) AND coalesce(ended, asleep) IS NOT NULL GROUP BY 1`,
  )
  const ofExecution = db.prepare(
    'SELECT sessions.id FROM executions JOIN sessions ON key = session WHERE executions.id = ?',
  )
  const ofSdkSession = db.prepare('SELECT 1 FROM sessions WHERE sdk_session = ? LIMIT 1')

  /** Of each engine, status and profile the newest: an index gives them however many others there are. */
  const places = ({ status, engine, profiles, before = Number.MAX_SAFE_INTEGER, limit }: AtRestQuery) => {
    const lists = (engine ? [engine] : ENGINES).flatMap((engine) =>
      (status ? [status] : ALL).flatMap((status) =>
        profiles
          ? profiles.map((profile) => newestUnder[STATUSES[status]].all(profile, engine, status, before, limit))
          : [newestOf[STATUSES[status]].all(engine, status, before, limit)],
      ),
    )
    const found: { key: number; place: number }[] = lists.flat()
    return found.sort((a, b) => b.place - a.place).slice(0, limit)
  }

  return {
    'journal.atRest'(query) {
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
    'journal.dueFirst': (limit, after) => due.all(after?.wakesAt ?? Number.MIN_SAFE_INTEGER, after?.id ?? '', limit),
    'journal.restTotals'() {
      const found = { closed: 0, failed: 0, idle: 0, parked: 0, lastOrder: 0 }
      for (const { status, count, last } of totals.flatMap((total) => total.all())) {
        found[status as RestStatus] += count
        found.lastOrder = Math.max(found.lastOrder, last)
      }
      for (const { status, count } of withNews.all()) found[status as RestStatus] -= count
      return found
    },
    'journal.sessionOf': (executionId) => ofExecution.get(executionId)?.id,
    'journal.continues': (sdkSessionId) => ofSdkSession.get(sdkSessionId) !== undefined,
  }
}
