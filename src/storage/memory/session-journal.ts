import type { Engine } from '../../../schemas/sessions.js'
import type { KeptKey } from '../../idempotency/store.js'
import { byText, prefixLength, SortedList } from '../../lib/sorted-list.js'
import type { KeptNotification } from '../../notifications/store.js'
import {
  type Asleep,
  type DueSleeper,
  executionsOf,
  isTerminal,
  type JournaledEvent,
  type JournaledOrigin,
  type JournaledSession,
  type JournaledState,
  type JournalWrite,
  orderOf,
  type RestStatus,
  type SessionJournal,
} from '../../sessions/kept/journal.js'
import type { News } from '../../sessions/kept/news.js'
import type { UsageCount } from '../../usage/store.js'
import type { KeptDelivery } from '../../webhooks/outbox.js'

/** Facts are kept as JSON text, so that nothing is shared with who wrote them. */
interface Entry {
  profile: string
  generation: string
  origin: string
  state: string
  snapshot: string | undefined
  /** By key, each as its JSON. */
  news: Map<string, string>
  reservedSeq: number
  /** Rising by `seq`. */
  events: JournaledEvent[]
  rest: Rest | undefined
  /** Ids of those that are found by it. */
  executions: string[]
}

/** Of a session at rest. */
interface Rest {
  id: string
  order: number
  /** Of two of one order, the one that came to rest later has the greater one. */
  n: number
  status: RestStatus
  engine: Engine
  /** Epoch milliseconds of its last activity. */
  since: number
  asleep: Asleep | undefined
}

/** What is kept in the same write by other parts of the storage. */
interface WrittenAlong {
  onKey?(key: KeptKey): void
  onDelivery?(delivery: KeptDelivery): void
  onNotification?(notification: KeptNotification): void
  onUsage?(count: UsageCount): void
}

/**
 * Keeps sessions and their events for as long as the process runs; a second gateway that is built on the same object finds what the
 * first one left.
 */
export function createMemorySessionJournal({
  onKey,
  onDelivery,
  onNotification,
  onUsage,
}: WrittenAlong = {}): SessionJournal {
  const sessions = new Map<string, Entry>()

  const resting = new SortedList<Rest>((a, b) => a.order - b.order || a.n - b.n)
  const ofExecutions = new Map<string, string>()
  let written = 0

  const rest = (id: string, entry: Entry, state: JournaledState, asleep: Asleep | undefined) => {
    if (entry.rest) resting.delete(entry.rest)
    entry.rest = undefined
    const status = isTerminal(state.info) ? (state.info.status as RestStatus) : asleep?.status
    if (status === undefined) return
    const { engine, lastActivityAt: since } = state.info
    entry.rest = { id, n: ++written, order: orderOf({ state }), status, engine, since, asleep: asleep && { ...asleep } }
    resting.add(entry.rest)
  }

  /** Of nobody, or of one that is on its way out. */
  const isFree = (executionId: string) => {
    const owner = sessions.get(ofExecutions.get(executionId) ?? '')
    return !owner || owner.news.has('removal')
  }

  const findBy = (id: string, entry: Entry, state: JournaledState) => {
    for (const executionId of executionsOf(state).filter(isFree)) {
      ofExecutions.set(executionId, id)
      entry.executions.push(executionId)
    }
  }

  const listed = (id: string, entry: Entry): JournaledSession => ({
    id,
    profile: entry.profile,
    generation: entry.generation,
    state: JSON.parse(entry.state) as JournaledState,
    reservedSeq: entry.reservedSeq,
    lastSeq: entry.events.at(-1)?.seq ?? 0,
    ...(entry.news.size > 0 && { news: [...entry.news.values()].map((text): News => JSON.parse(text)) }),
    ...(entry.rest?.asleep && { sleeps: true }),
  })

  return {
    async write(write) {
      const known = sessions.get(write.id)
      assertWritable(write, known && { lastSeq: known.events.at(-1)?.seq ?? 0 })
      const { id, origin, state, asleep, snapshot, events = [], reservedSeq = 0, taken = [], keys = [] } = write
      // before anything is changed: what is no JSON is refused as a whole
      const texts = { state: state && JSON.stringify(state), snapshot: snapshot && JSON.stringify(snapshot) }
      const entry = known ?? newEntry(origin!, texts.state!)
      if (state) {
        entry.state = texts.state!
        rest(id, entry, state, asleep)
        findBy(id, entry, state)
      }
      if (snapshot) entry.snapshot = texts.snapshot
      for (const { seq, json } of events) entry.events.push({ seq, json })
      for (const one of taken) entry.news.delete(one)
      entry.reservedSeq = Math.max(entry.reservedSeq, reservedSeq, events.at(-1)?.seq ?? 0)
      if (!known) sessions.set(id, entry)
      for (const key of keys) onKey?.(key)
      for (const delivery of write.deliveries ?? []) onDelivery?.(delivery)
      for (const notification of write.notifications ?? []) onNotification?.(notification)
      for (const count of write.usage ?? []) onUsage?.(count)
    },
    async deposit(id, news, keys = []) {
      const entry = sessions.get(id)
      if (entry) for (const key of keys) onKey?.(key)
      for (const one of news) if (entry && !entry.news.has(one.key)) entry.news.set(one.key, JSON.stringify(one))
      return entry !== undefined
    },
    async list() {
      return [...sessions].map(([id, entry]) => listed(id, entry))
    },
    async awake() {
      return [...sessions]
        .filter(([, { rest, news }]) => !rest || news.size > 0)
        .map(([id, entry]) => listed(id, entry))
    },
    async atRest({ status, engine, profiles, before = Number.POSITIVE_INFINITY, limit }) {
      const found: JournaledSession[] = []
      for (const one of resting.descending(({ order }) => order < before)) {
        const entry = sessions.get(one.id)!
        const isWanted =
          (status === undefined || one.status === status) &&
          (engine === undefined || one.engine === engine) &&
          (profiles === undefined || profiles.includes(entry.profile)) &&
          !entry.news.has('removal')
        if (isWanted) found.push(listed(one.id, entry))
        if (found.length === limit) return { sessions: found, next: one.order }
      }
      return { sessions: found, next: undefined }
    },
    async endedFirst(limit) {
      const ended = [...resting.ascending()].filter(({ asleep }) => !asleep).sort((a, b) => a.since - b.since)
      return ended.slice(0, limit).map(({ id, since: endedAt }) => ({ id, endedAt }))
    },
    async dueFirst(limit, after) {
      const due = [...resting.ascending()].flatMap(({ id, asleep }) =>
        asleep?.wakesAt === undefined ? [] : { id, wakesAt: asleep.wakesAt },
      )
      return due
        .sort(byTime)
        .filter((one) => !after || byTime(one, after) > 0)
        .slice(0, limit)
    },
    async restTotals() {
      const totals = { closed: 0, failed: 0, idle: 0, parked: 0, lastOrder: 0 }
      for (const { id, order, status } of resting.ascending()) {
        if (sessions.get(id)!.news.size === 0) totals[status]++
        totals.lastOrder = order
      }
      return totals
    },
    async sessionOf(executionId) {
      return ofExecutions.get(executionId)
    },
    async continues(sdkSessionId) {
      return [...resting.ascending()].some(({ asleep }) => asleep?.sdkSessionId === sdkSessionId)
    },
    async get(id) {
      const entry = sessions.get(id)
      if (!entry) return undefined
      const { origin, snapshot } = entry
      return {
        ...listed(id, entry),
        ...(JSON.parse(origin) as JournaledOrigin),
        ...(snapshot !== undefined && { snapshot: JSON.parse(snapshot) }),
      }
    },
    async read(id, afterSeq, untilSeq, maxBytes) {
      const events = sessions.get(id)?.events ?? []
      const found: JournaledEvent[] = []
      let bytes = 0
      for (let at = prefixLength(events, ({ seq }) => seq <= afterSeq); at < events.length; at++) {
        const event = events[at]!
        if (event.seq > untilSeq || (bytes > 0 && bytes + event.json.length > maxBytes)) break
        found.push({ ...event })
        bytes += event.json.length
      }
      return found
    },
    async remove(id, deliveries = [], notifications = [], _fence, usage = []) {
      const entry = sessions.get(id)
      if (!entry) return
      sessions.delete(id)
      if (entry.rest) resting.delete(entry.rest)
      for (const executionId of entry.executions)
        if (ofExecutions.get(executionId) === id) ofExecutions.delete(executionId)
      for (const delivery of deliveries) onDelivery?.(delivery)
      for (const notification of notifications) onNotification?.(notification)
      for (const count of usage) onUsage?.(count)
    },
  }
}

const newEntry = (origin: JournaledOrigin, state: string): Entry => ({
  profile: origin.profile,
  generation: origin.generation,
  origin: JSON.stringify(origin),
  state,
  snapshot: undefined,
  news: new Map(),
  reservedSeq: 0,
  events: [],
  rest: undefined,
  executions: [],
})

const byTime = (a: DueSleeper, b: DueSleeper): number => a.wakesAt - b.wakesAt || byText(a.id, b.id)

/** @throws Error when a journal may not take this write. @param known absent: the session is not there */
function assertWritable({ id, origin, state, events = [] }: JournalWrite, known?: { lastSeq: number }): void {
  if (!known && !(origin && state))
    throw new Error(`The journal has no session ${id}; its first write has origin and state.`)
  if (known && origin) throw new Error(`The journal has a session ${id} already.`)
  let last = known?.lastSeq ?? 0
  for (const { seq } of events) {
    if (seq <= last) throw new Error(`Event ${seq} of session ${id} does not come after event ${last}.`)
    last = seq
  }
}
