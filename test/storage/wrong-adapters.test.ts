import t from 'tap'
import { isAsExpected, type JobFilter, type JobPatch, type QueueAdapter } from '../../src/jobs/adapter.js'
import { queueAdapterConformance } from '../../src/jobs/adapter-conformance.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { failed } from '../fixtures/failed-cases.js'

t.test('an adapter that still has a job which was removed', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const removed = new Map<string, Awaited<ReturnType<QueueAdapter['get']>>>()
    return {
      ...adapter,
      async remove(id) {
        removed.set(id, removed.get(id) ?? (await adapter.get(id)))
        await adapter.remove!(id)
      },
      get: async (id) => removed.get(id) ?? adapter.get(id),
    }
  }
  t.match(await failed(queueAdapterConformance, make), [/^removes a job as if it had never been/])
})

t.test('an adapter that does not keep what the queue notes of an attempt', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const update: QueueAdapter['update'] = (id, { notes, ...patch }, ...more) => {
      const { attempt: _attempt, ...kept } = notes ?? {}
      return adapter.update(id, { ...patch, ...(notes && { notes: kept }) }, ...more)
    }
    return { ...adapter, update }
  }
  t.match(await failed(queueAdapterConformance, make), [/^keeps all that a job goes on with/])
})

t.test('an adapter that looks at a job first, and changes it then', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const update: QueueAdapter['update'] = async (id, patch, expected, ...more) => {
      const found = await adapter.get(id)
      if (!found || !isAsExpected(expected, found.info.status, found.rev)) return null
      return adapter.update(id, patch, undefined, ...more)
    }
    return { ...adapter, update }
  }
  t.match(await failed(queueAdapterConformance, make), [/^lets one of two changes through/])
})

t.test('an adapter that takes no profile for any, or lists only so many', async (t) => {
  const listing = (change: (filter: JobFilter) => JobFilter) => () => {
    const adapter = createMemoryQueueAdapter()
    return { ...adapter, list: (filter: JobFilter = {}) => adapter.list(change(filter)) }
  }
  const none = listing(({ profiles, ...filter }) => ({ ...filter, ...(profiles?.length && { profiles }) }))
  t.match(await failed(queueAdapterConformance, none), [/^lists newest first, by status, by profile/])
  const few = listing((filter) => ({ limit: 100, ...filter }))
  t.match(await failed(queueAdapterConformance, few), [/^lists all/])
  const one = listing(({ status, ...filter }) => ({ ...filter, ...(status && { status: status.slice(0, 1) }) }))
  t.match(await failed(queueAdapterConformance, one), [/^lists newest first, by status, by profile/])
})

t.test('an adapter whose numbers, texts or settled attempts are cut off', async (t) => {
  const changed = (change: (adapter: QueueAdapter) => Partial<QueueAdapter>) => () => {
    const adapter = createMemoryQueueAdapter()
    return { ...adapter, ...change(adapter) }
  }
  const unsigned = changed(({ addDailyTokens }) => ({
    addDailyTokens: (day, tokens) => addDailyTokens(day, Math.max(0, tokens)),
  }))
  const narrow = changed(({ addDailyTokens }) => ({ addDailyTokens: (day, tokens) => addDailyTokens(day, tokens | 0) }))
  for (const make of [unsigned, narrow])
    t.match(await failed(queueAdapterConformance, make), [/^counts tokens per day/])
  const short = changed(({ add }) => ({
    add: ({ info, request: { session, ...request } }) =>
      add({ info, request: { ...request, session: { ...session, prompt: session.prompt.slice(0, 65_535) } } }),
  }))
  t.match(await failed(queueAdapterConformance, short), [/^keeps a record as it was/])
  const sparse = changed(({ settle }) => ({
    settle: (id, { status, finishedAt }, ...more) => settle!(id, { ...{ status, finishedAt } } as JobPatch, ...more),
  }))
  t.match(await failed(queueAdapterConformance, sparse), [/^settles an attempt/])
})
