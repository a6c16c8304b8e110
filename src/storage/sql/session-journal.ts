import {
  executionsOf,
  type JournaledOrigin,
  type JournaledSession,
  type JournaledState,
  type ReadEvent,
  type ReadEvents,
  type SessionJournal,
} from '../../sessions/kept/journal.js'
import { type Asked, type News, newsOf } from '../../sessions/kept/news.js'
import { parsed } from './json-columns.js'
import type { CallDatabase, EventsRead } from './operations.js'
import { deliveryValues, keptRow, listedColumns, type NewsRow, restColumns, type SessionRow } from './rows.js'
import { listed } from './stores.js'

const SESSIONS_PER_PAGE = 200

/** @param isListed whether a write says by what sessions are found among those of several nodes */
export const sessionJournal = (call: CallDatabase, now: () => number, isListed = false): SessionJournal => ({
  write: ({ id, origin, state, asleep, snapshot, events = [], reservedSeq = 0, taken, ...along }) =>
    call('journal.write', {
      id,
      origin: origin && { profile: origin.profile, generation: origin.generation, text: JSON.stringify(origin) },
      state: state && JSON.stringify(state),
      rest: state && restColumns(state, asleep),
      executions: state && executionsOf(state),
      ...(state && isListed && { listed: listedColumns(state) }),
      snapshot: snapshot && JSON.stringify(snapshot),
      reservedSeq,
      seqs: events.map(({ seq }) => seq),
      texts: events.map(({ json }) => json),
      taken,
      keys: along.keys?.map((key) => keptRow(key, now())),
      deliveries: along.deliveries?.map(deliveryValues),
      notifications: along.notifications,
      usage: along.usage,
    }),
  deposit: (id, news, keys) =>
    call(
      'journal.deposit',
      id,
      news.map((one) => ({ key: one.key, news: JSON.stringify(one) })),
      keys?.map((key) => keptRow(key, now())),
    ),
  list: (onUnreadable = () => {}) => sessions(call, 'journal.page', onUnreadable),
  awake: (onUnreadable = () => {}) => sessions(call, 'journal.awake', onUnreadable),
  async atRest(query, onUnreadable = () => {}) {
    const { rows, isLast } = await call('journal.atRest', query)
    const found = await listed(
      async (last?: SessionRow) => (last ? [] : rows),
      (row) => sessionOf(row, []),
      onUnreadable,
    )
    return { sessions: found, next: isLast ? undefined : rows.at(-1)!.place }
  },
  endedFirst: (limit) => call('journal.endedFirst', limit),
  restTotals: () => call('journal.restTotals'),
  dueFirst: (limit, after) => call('journal.dueFirst', limit, after),
  sessionOf: (executionId) => call('journal.sessionOf', executionId),
  continues: (sdkSessionId) => call('journal.continues', sdkSessionId),
  async get(id) {
    const found = await call('journal.get', id)
    if (!found) return undefined
    const { row, news } = found
    return {
      ...sessionOf(row, news),
      ...parsed<JournaledOrigin>(row.origin, 'The origin of session', id, 'origins'),
      ...(row.snapshot !== null && { snapshot: parsed(row.snapshot, 'The snapshot of session', id, 'snapshots') }),
    }
  },
  read: async (id, afterSeq, untilSeq, maxBytes) =>
    eventsOf(await call('journal.read', id, afterSeq, untilSeq, maxBytes)),
  remove: (id, deliveries, notifications, _fence, usage) =>
    call('journal.remove', id, deliveries?.map(deliveryValues), notifications, usage),
})

function eventsOf(read: EventsRead): ReadEvents {
  if ('texts' in read) return read.seqs.map((seq, index) => ({ seq, json: read.texts[index]! }))
  const pieces = read.pieces.map(({ buffer, byteOffset, length }) => Buffer.from(buffer, byteOffset, length))
  let piece = 0
  let at = 0
  const events = read.seqs.map((seq, index): ReadEvent => {
    if (at === pieces[piece]!.length) {
      piece++
      at = 0
    }
    const json = pieces[piece]!.subarray(at, at + read.sizes[index]!)
    at += json.length
    return { seq, json }
  })
  return Object.assign(events, { release: () => read.pieces.forEach(free) })
}

/** From Node 21 on: V8 12 begins a collection of all its memory for every 64 MB that lie outside of it. */
function free({ buffer }: { buffer: ArrayBuffer & { transfer?(length: number): unknown } }): void {
  buffer.transfer?.(0)
}

const sessions = (call: CallDatabase, page: 'journal.page' | 'journal.awake', onUnreadable: (error: Error) => void) =>
  listed(
    async (last?: SessionRow) => {
      const rows = await call(page, last?.key ?? 0, SESSIONS_PER_PAGE)
      if (rows.length === 0) return []
      const news = await call('journal.news', rows[0]!.key, rows.at(-1)!.key)
      return rows.map((row) => ({ ...row, news: news.filter(({ session }) => session === row.key) }))
    },
    (row) => sessionOf(row, row.news),
    onUnreadable,
  )

/** As the version before this one kept what a session was asked to do. */
type EarlierState = JournaledState & { ahead?: readonly Asked[] }

export function sessionOf(row: SessionRow, rows: readonly NewsRow[]): JournaledSession {
  const { key, id, profile, generation, reservedSeq, lastSeq, asleep } = row
  const { ahead = [], ...state } = parsed<EarlierState>(row.state, 'Session', id, 'sessions')
  const news = [...ahead.map(newsOf), ...rows.map((one) => parsed<News>(one.news, 'News of session', id, 'news'))]
  return {
    ...{ id, position: key, profile, generation, state, reservedSeq, lastSeq },
    ...(news.length > 0 && { news }),
    ...(asleep !== null && { sleeps: true }),
  }
}
