import type { JobRecord, QueueAdapter } from '../../jobs/adapter.js'
import { StorageError } from '../storage.js'
import { parsed, unreadable } from './json-columns.js'
import type { CallDatabase } from './operations.js'
import { deliveryValues, type JobPageFilter, type JobRow, keptRow } from './rows.js'
import { readable } from './stores.js'

const JOBS_PER_PAGE = 200
const PRUNED_AT_ONCE = 500
/** Of the jobs that are ready, those that are next. */
const LOOKED_AT = 1_000

export const queueAdapter = (call: CallDatabase, now: () => number): QueueAdapter => ({
  add: ({ info, request }, key) =>
    call('jobs.add', JSON.stringify(info), JSON.stringify(request), request.priority ?? 0, key && keptRow(key, now())),
  claimNext: async () => recordOf((await call('jobs.claim', now(), 1)).rows[0]),
  async claim(limit, terms) {
    const { rows, paused } = await call('jobs.claim', now(), limit, terms)
    return { jobs: rows.map((row) => recordOf(row)), paused }
  },
  get: async (id) => recordOf(await call('jobs.get', id)),
  async list({ status, profiles, after, limit = Number.POSITIVE_INFINITY } = {}, onUnreadable = () => {}) {
    const filter = {
      ...(status && { status: [...new Set(status)] }),
      ...(profiles && { profiles: [...new Set(profiles)] }),
    }
    const records: JobRecord[] = []
    let from: Pick<JobPageFilter, 'before' | 'after'> = after ? { after } : {}
    for (;;) {
      const asked = Math.min(JOBS_PER_PAGE, limit - records.length)
      if (asked <= 0) return records
      const { rows, isLast } = await call('jobs.page', { ...filter, ...from, limit: asked })
      records.push(...readable(rows, (row) => ({ ...recordOf(row), position: row.n }), onUnreadable))
      if (isLast) return records
      from = { before: rows.at(-1)!.n }
    }
  },
  update: async (id, patch, expected, deliveries) =>
    recordOf(await call('jobs.update', id, patch, expected, deliveries?.map(deliveryValues))),
  counts: () => call('jobs.counts'),
  delayed: (after, limit) => call('jobs.delayed', after, limit),
  next: (limit, profiles) => call('jobs.next', now(), limit, profiles),
  async *owned(onUnreadable = () => {}) {
    for (let after = 0; ; ) {
      const rows = await call('jobs.owned', after, JOBS_PER_PAGE)
      yield readable(rows, (row) => recordOf(row), onUnreadable)
      if (rows.length < JOBS_PER_PAGE) return
      after = rows.at(-1)!.n
    }
  },
  unreadable: async () =>
    (await call('jobs.unreadable', LOOKED_AT)).map(
      (id) => new StorageError('STORAGE_UNREADABLE', unreadable('The job', id, 'jobs')),
    ),
  remove: (id) => call('jobs.remove', id),
  ended: async (olderThanMs, limit) =>
    (await call('jobs.ended', now() - olderThanMs, limit)).map((info) => JSON.parse(info)),
  async prune(olderThanMs) {
    const finishedBy = now() - olderThanMs
    for (let count = 0; ; ) {
      const removed = await call('jobs.prune', finishedBy, PRUNED_AT_ONCE)
      count += removed
      if (removed < PRUNED_AT_ONCE) return count
    }
  },
  addDailyTokens: (day, tokens) => call('jobs.charge', day, tokens),
  dailyTokens: (day) => call('jobs.tokens', day),
  async settle(id, patch, { day, tokens }, expected, deliveries) {
    const told = deliveries?.map(deliveryValues)
    const { row, dailyTokens } = await call('jobs.settle', id, patch, day, tokens, expected, told)
    return { record: recordOf(row), dailyTokens }
  },
})

function recordOf(row: JobRow): JobRecord
function recordOf(row: JobRow | null | undefined): JobRecord | null
function recordOf(row: JobRow | null | undefined): JobRecord | null {
  if (!row) return null
  const { id, info, request, rev } = row
  const of = <T>(text: string): T => parsed(text, 'The job', id, 'jobs')
  return { info: of(info), request: of(request), rev }
}
