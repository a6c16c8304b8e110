import type { SessionInfo } from '../../../schemas/sessions.js'
import type { KeptKey } from '../../idempotency/store.js'
import { prefixLength, SortedList } from '../../lib/sorted-list.js'
import type { KeptNotification } from '../../notifications/store.js'
import {
  executionsOf,
  isTerminal,
  type JournaledEvent,
  type JournaledOrigin,
  type JournaledSession,
  type JournaledState,
  type JournalWrite,
  orderOf,
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
  ended: Ended | undefined
}

interface Ended {
  id: string
  order: number
  /** Of two of one order, the one that ended later has the greater one. */
  n: number
  info: SessionInfo
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

  const ended = new SortedList<Ended>((a, b) => a.order - b.order || a.n - b.n)
  let written = 0

  const end = (id: string, entry: Entry, state: JournaledState) => {
    if (entry.ended) ended.delete(entry.ended)
    entry.ended = undefined
    if (!isTerminal(state.info)) return
    entry.ended = { id, n: ++written, order: orderOf({ state }), info: JSON.parse(JSON.stringify(state.info)) }
    ended.add(entry.ended)
  }

  const listed = (id: string, { profile, generation, state, reservedSeq, events, news }: Entry): JournaledSession => ({
    id,
    profile,
    generation,
    state: JSON.parse(state) as JournaledState,
    reservedSeq,
    lastSeq: events.at(-1)?.seq ?? 0,
    ...(news.size > 0 && { news: [...news.values()].map((text): News => JSON.parse(text)) }),
  })

  return {
    async write(write) {
      const known = sessions.get(write.id)
      assertWritable(write, known && { lastSeq: known.events.at(-1)?.seq ?? 0 })
      const { id, origin, state, snapshot, events = [], reservedSeq = 0, taken = [], keys = [] } = write
      const entry = known ?? newEntry(origin!, state!)
      if (state) entry.state = JSON.stringify(state)
      if (state) end(id, entry, state)
      if (snapshot) entry.snapshot = JSON.stringify(snapshot)
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
    async unended() {
      return [...sessions]
        .filter(([, { ended, news }]) => !ended || news.size > 0)
        .map(([id, entry]) => listed(id, entry))
    },
    async ended({ status, engine, profiles, before = Number.POSITIVE_INFINITY, limit }) {
      const found: JournaledSession[] = []
      for (const { id, order, info } of ended.descending(({ order }) => order < before)) {
        const entry = sessions.get(id)!
        const isWanted =
          (status === undefined || info.status === status) &&
          (engine === undefined || info.engine === engine) &&
          (profiles === undefined || profiles.includes(entry.profile)) &&
          !entry.news.has('removal')
        if (isWanted) found.push(listed(id, entry))
        if (found.length === limit) return { sessions: found, next: order }
      }
      return { sessions: found, next: undefined }
    },
    async endedFirst(limit) {
      const byTime = [...ended.ascending()].sort((a, b) => a.info.lastActivityAt - b.info.lastActivityAt)
      return byTime.slice(0, limit).map(({ id, info }) => ({ id, endedAt: info.lastActivityAt }))
    },
    async endedTotals() {
      let count = 0
      let lastOrder = 0
      for (const { id, order } of ended.ascending()) {
        if (sessions.get(id)!.news.size === 0) count++
        lastOrder = order
      }
      return { count, lastOrder }
    },
    async endedExecutions() {
      return [...ended.ascending()].flatMap(({ id }) => {
        const { state, news } = sessions.get(id)!
        const executionIds = news.has('removal') ? [] : executionsOf(JSON.parse(state))
        return executionIds.length > 0 ? [{ id, executionIds }] : []
      })
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
      if (entry.ended) ended.delete(entry.ended)
      for (const delivery of deliveries) onDelivery?.(delivery)
      for (const notification of notifications) onNotification?.(notification)
      for (const count of usage) onUsage?.(count)
    },
  }
}

const newEntry = (origin: JournaledOrigin, state: JournaledState): Entry => ({
  profile: origin.profile,
  generation: origin.generation,
  origin: JSON.stringify(origin),
  state: JSON.stringify(state),
  snapshot: undefined,
  news: new Map(),
  reservedSeq: 0,
  events: [],
  ended: undefined,
})

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
