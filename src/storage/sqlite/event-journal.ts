import type { EventJournal, JournaledOrigin, JournaledSession, JournaledState } from '../../sessions/journal.js'
import { type CallDatabase, listed, parsed } from './stores.js'
import { keptRow } from './tables/idempotency.js'
import { deliveryValues } from './tables/outbox.js'
import type { SessionRow } from './tables/sessions.js'

const SESSIONS_PER_PAGE = 200

export const eventJournal = (call: CallDatabase, now: () => number): EventJournal => ({
  write: ({ id, origin, state, snapshot, events = [], reservedSeq = 0, keys, deliveries, notifications }) =>
    call('journal.write', {
      id,
      ...(origin && {
        origin: { profile: origin.profile, generation: origin.generation, text: JSON.stringify(origin) },
      }),
      ...(state && { state: JSON.stringify(state) }),
      ...(snapshot && { snapshot: JSON.stringify(snapshot) }),
      reservedSeq,
      seqs: events.map(({ seq }) => seq),
      texts: events.map(({ json }) => json),
      ...(keys && { keys: keys.map((key) => keptRow(key, now())) }),
      ...(deliveries && { deliveries: deliveries.map(deliveryValues) }),
      ...(notifications && { notifications }),
    }),
  list: (onUnreadable = () => {}) =>
    listed(
      (last?: SessionRow) => call('journal.page', last?.key ?? 0, SESSIONS_PER_PAGE),
      (row) => ({ ...sessionOf(row), position: row.key }),
      onUnreadable,
    ),
  async get(id) {
    const row = await call('journal.get', id)
    if (!row) return undefined
    return {
      ...sessionOf(row),
      ...parsed<JournaledOrigin>(row.origin, 'The origin of session', id),
      ...(row.snapshot !== null && { snapshot: parsed(row.snapshot, 'The snapshot of session', id) }),
    }
  },
  async read(id, afterSeq, untilSeq, maxBytes) {
    const { seqs, texts } = await call('journal.read', id, afterSeq, untilSeq, maxBytes)
    return seqs.map((seq, index) => ({ seq, json: texts[index]! }))
  },
  remove: (id, deliveries, notifications) => call('journal.remove', id, deliveries?.map(deliveryValues), notifications),
})

const sessionOf = ({ id, profile, generation, reservedSeq, lastSeq, state }: SessionRow): JournaledSession => ({
  id,
  profile,
  generation,
  state: parsed<JournaledState>(state, 'Session', id),
  reservedSeq,
  lastSeq,
})
