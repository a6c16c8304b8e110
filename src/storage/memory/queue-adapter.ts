import type { JobStatus } from '../../../schemas/jobs.js'
import type { KeptKey } from '../../idempotency/store.js'
import {
  type ClaimTerms,
  claimPatch,
  type Expected,
  isAsExpected,
  type JobPatch,
  type JobPlace,
  type JobRecord,
  type QueueAdapter,
} from '../../jobs/adapter.js'
import { isTerminal } from '../../jobs/job.js'
import { patched } from '../../jobs/patch.js'
import { SortedList } from '../../lib/sorted-list.js'
import type { KeptDelivery } from '../../webhooks/outbox.js'

interface Entry {
  record: JobRecord
  /** Counts submissions. */
  readonly ordinal: number
  readonly priority: number
}

const bySubmission = (a: Entry, b: Entry) => a.ordinal - b.ordinal
const byTurn = (a: Entry, b: Entry) => b.priority - a.priority || bySubmission(a, b)
const byTime = (key: 'nextRunAt' | 'finishedAt') => (a: Entry, b: Entry) =>
  (a.record.info[key] ?? 0) - (b.record.info[key] ?? 0) || bySubmission(a, b)

/** Jobs of one status and profile, in the order of their submission. */
interface Bucket {
  status: JobStatus
  profile: string
  entries: SortedList<Entry>
}

interface MemoryQueueOptions {
  now?: () => number
  /** Keeps a key in the same write, for a storage of which this is a part. */
  onKey?: (key: KeptKey) => void
  /** Keeps a delivery, in the same way. */
  onDelivery?: (delivery: KeptDelivery) => void
}

/**
 * Keeps jobs for as long as the process runs. Every operation goes through an index, so that what it costs does not depend on how many
 * jobs there are.
 * @param options.now epoch milliseconds; default `Date.now`
 */
export function createMemoryQueueAdapter({ now = Date.now, onKey, onDelivery }: MemoryQueueOptions = {}): QueueAdapter {
  const entries = new Map<string, Entry>()
  const buckets = new Map<string, Bucket>()
  const ready = new SortedList<Entry>(byTurn)
  const delayed = new SortedList<Entry>(byTime('nextRunAt'))
  const finished = new SortedList<Entry>(byTime('finishedAt'))
  const tokensByDay = new Map<string, number>()
  let ordinal = 0

  const timeIndex = ({ record: { info } }: Entry) => {
    if (info.status === 'queued') return info.nextRunAt === undefined ? ready : delayed
    return isTerminal(info.status) ? finished : undefined
  }

  const index = (entry: Entry) => {
    const { status, profile } = entry.record.info
    const key = `${status} ${profile}`
    let bucket = buckets.get(key)
    if (!bucket) {
      bucket = { status, profile, entries: new SortedList(bySubmission) }
      buckets.set(key, bucket)
    }
    bucket.entries.add(entry)
    timeIndex(entry)?.add(entry)
  }

  const unindex = (entry: Entry) => {
    const { status, profile } = entry.record.info
    buckets.get(`${status} ${profile}`)?.entries.delete(entry)
    // one that fell due stands among the ready ones with its time
    if (!timeIndex(entry)?.delete(entry)) ready.delete(entry)
  }

  const change = (entry: Entry, patch: JobPatch): JobRecord => {
    const { info, request, rev = 0 } = entry.record
    const changed = patched(info, patch)
    const moves =
      changed.status !== info.status || changed.nextRunAt !== info.nextRunAt || changed.finishedAt !== info.finishedAt
    if (moves) unindex(entry)
    entry.record = { info: changed, request, rev: rev + 1 }
    if (moves) index(entry)
    return entry.record
  }

  const update = (
    id: string,
    patch: JobPatch,
    expected?: Expected,
    deliveries: readonly KeptDelivery[] = [],
  ): JobRecord | null => {
    const entry = entries.get(id)
    if (!entry || !isAsExpected(expected, entry.record.info.status, entry.record.rev)) return null
    for (const delivery of deliveries) onDelivery?.(delivery)
    return change(entry, patch)
  }

  const charge = (day: string, tokens: number): number => {
    const total = (tokensByDay.get(day) ?? 0) + tokens
    tokensByDay.set(day, total)
    return total
  }

  const takeDue = () => {
    for (let due = delayed.first; due && due.record.info.nextRunAt! <= now(); due = delayed.first) {
      delayed.delete(due)
      ready.add(due)
    }
  }

  const claim = (limit: number, begin?: ClaimTerms['begin']): JobRecord[] => {
    const claimed: JobRecord[] = []
    takeDue()
    for (let entry = ready.first; entry && claimed.length < limit; entry = ready.first)
      claimed.push(change(entry, claimPatch(entry.record.info, begin, claimed.length)))
    return claimed
  }

  const before = ({ id, createdAt, position = entries.get(id)?.ordinal }: JobPlace) => {
    if (position !== undefined) return (entry: Entry) => entry.ordinal < position
    return (entry: Entry) => entry.record.info.createdAt <= createdAt
  }

  return {
    async add(record, key) {
      if (entries.has(record.info.id)) throw new Error(`There is a job ${record.info.id} already.`)
      const { info, request } = record
      const entry: Entry = { record: { info, request, rev: 0 }, ordinal: ++ordinal, priority: request.priority ?? 0 }
      entries.set(record.info.id, entry)
      index(entry)
      if (key) onKey?.(key)
    },
    async claimNext() {
      return claim(1)[0] ?? null
    },
    async claim(limit, { tokens, begin } = {}) {
      const paused = tokens !== undefined && (tokensByDay.get(tokens.day) ?? 0) >= tokens.limit
      return { jobs: paused ? [] : claim(limit, begin), paused }
    },
    async get(id) {
      return entries.get(id)?.record ?? null
    },
    async list({ status, profiles, after, limit = Infinity } = {}) {
      const chosen = [...buckets.values()].filter(
        (bucket) =>
          bucket.entries.length > 0 &&
          (status === undefined || status.includes(bucket.status)) &&
          (profiles === undefined || profiles.includes(bucket.profile)),
      )
      const isBefore = after && before(after)
      return newestOf(
        chosen.map((bucket) => bucket.entries.descending(isBefore)),
        limit,
      )
    },
    async update(id, patch, expected, deliveries) {
      return update(id, patch, expected, deliveries)
    },
    async counts() {
      return [...buckets.values()]
        .filter(({ status, entries }) => !isTerminal(status) && entries.length > 0)
        .map(({ status, profile, entries }) => ({ status, profile, count: entries.length }))
    },
    async delayed(after, limit) {
      const found: { id: string; nextRunAt: number }[] = []
      for (const { record } of delayed.ascending(({ record }) => record.info.nextRunAt! > after)) {
        if (found.length === limit) break
        found.push({ id: record.info.id, nextRunAt: record.info.nextRunAt! })
      }
      return found
    },
    async next(limit, profiles) {
      const found: string[] = []
      takeDue()
      for (const list of [ready, delayed])
        for (const { record } of list.ascending()) {
          if (found.length >= limit) return found
          if (!profiles || profiles.includes(record.info.profile)) found.push(record.info.id)
        }
      return found
    },
    async remove(id) {
      const entry = entries.get(id)
      if (!entry) return
      unindex(entry)
      entries.delete(id)
    },
    async ended(olderThanMs, limit) {
      const by = now() - olderThanMs
      const isYoung = ({ record: { info } }: Entry) => (info.finishedAt ?? 0) > by
      const infos: JobRecord['info'][] = []
      for (const entry of finished.ascending()) {
        if (infos.length === limit || isYoung(entry)) break
        infos.push(entry.record.info)
      }
      return infos
    },
    async prune(olderThanMs) {
      const limit = now() - olderThanMs
      let count = 0
      for (let old = finished.first; old && (old.record.info.finishedAt ?? 0) <= limit; old = finished.first) {
        unindex(old)
        entries.delete(old.record.info.id)
        count++
      }
      return count
    },
    async addDailyTokens(day, tokens) {
      return charge(day, tokens)
    },
    async dailyTokens(day) {
      return tokensByDay.get(day) ?? 0
    },
    async settle(id, patch, { day, tokens }, expected, deliveries) {
      return { record: update(id, patch, expected, deliveries), dailyTokens: charge(day, tokens) }
    },
  }
}

/** Merges lists that each come newest first. */
function newestOf(lists: Iterator<Entry, void>[], limit: number): JobRecord[] {
  const heads = lists.map((list) => ({ list, next: list.next().value }))
  const records: JobRecord[] = []
  while (records.length < limit) {
    let newest: (typeof heads)[number] | undefined
    for (const head of heads) if (head.next && (!newest?.next || head.next.ordinal > newest.next.ordinal)) newest = head
    if (!newest?.next) break
    const { record, ordinal } = newest.next
    records.push({ info: record.info, request: record.request, rev: record.rev ?? 0, position: ordinal })
    newest.next = newest.list.next().value
  }
  return records
}
