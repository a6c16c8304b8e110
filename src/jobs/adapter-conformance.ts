import assert from 'node:assert/strict'
import type { JobStatus } from '../../schemas/jobs.js'
import type { ConformanceCase } from '../lib/conformance.js'
import { expectedOf, type JobPatch, type JobRecord, type QueueAdapter } from './adapter.js'
import { FULL_PATCH, HOUR_MS, ids, listed, record, unnumbered } from './conformance-fixtures.js'
import { listCases } from './list-conformance.js'

/** One thing that every QueueAdapter does. */
export type QueueAdapterCase = ConformanceCase<QueueAdapter>

/** Brings a job into a status on the way that the queue takes. */
async function addAs(adapter: QueueAdapter, id: string, status: JobStatus, patch: JobPatch = {}): Promise<void> {
  await adapter.add(record(id))
  if (status !== 'queued') await adapter.update(id, { status: 'running' })
  await adapter.update(id, { status, ...patch })
}

async function claimAll(adapter: QueueAdapter): Promise<string[]> {
  const claimed: string[] = []
  for (let next = await adapter.claimNext(); next; next = await adapter.claimNext()) claimed.push(next.info.id)
  return claimed
}

/** For authors of queue adapters: run every case on a new, empty adapter. The bundled adapters run the same ones. */
export const queueAdapterConformance: readonly QueueAdapterCase[] = [
  {
    name: 'keeps a record as it was, and knows no other',
    async run(adapter, reopen) {
      const given = record('a', { priority: -3 })
      await adapter.add(given)
      assert.deepEqual(unnumbered(await adapter.get('a')), given)
      assert.equal(await adapter.get('b'), null)
      assert.equal(await adapter.get('__proto__'), null)
      if (reopen) assert.deepEqual(unnumbered(await (await reopen()).get('a')), given)
      const { info, request } = record('long')
      const long = { info, request: { ...request, session: { ...request.session, prompt: 'ü'.repeat(100_000) } } }
      await adapter.add(long)
      assert.deepEqual(unnumbered(await adapter.get('long')), long)
    },
  },
  {
    name: 'claims by priority, then in the order of submission, also when the clock said the same',
    async run(adapter, reopen) {
      const at = Date.now()
      for (const [id, priority] of [
        ['a', undefined],
        ['b', 5],
        ['c', -1],
        ['d', 5],
        ['e', 0],
        ['f', undefined],
      ] as const)
        await adapter.add(record(id, { at, ...(priority !== undefined && { priority }) }))
      assert.deepEqual(await claimAll(reopen ? await reopen() : adapter), ['b', 'd', 'a', 'e', 'f', 'c'])
    },
  },
  {
    name: 'makes what it claims running and clears nextRunAt',
    async run(adapter) {
      await adapter.add(record('a', { runAt: Date.now() + HOUR_MS }))
      await adapter.update('a', { nextRunAt: Date.now() - 1 })
      const claimed = await adapter.claimNext()
      assert.equal(claimed?.info.status, 'running')
      assert.ok(claimed && !('nextRunAt' in claimed.info))
      assert.deepEqual(await adapter.get('a'), claimed)
    },
  },
  {
    name: 'gives no job to two claims that happen at once',
    async run(adapter, reopen) {
      const all = Array.from({ length: 40 }, (_, index) => `job-${index}`)
      for (const id of all) await adapter.add(record(id))
      const workers = [adapter, reopen ? await reopen() : adapter]
      const claims = await Promise.all(Array.from({ length: 60 }, (_, index) => workers[index % 2]!.claimNext()))
      const claimed = claims.flatMap((one) => (one ? [one.info.id] : []))
      assert.deepEqual(claimed.sort(), all.sort())
    },
  },
  {
    name: 'claims several at once, in the same order and none twice, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.claim) return
      const all = Array.from({ length: 9 }, (_, index) => `job-${index}`)
      for (const id of all) await adapter.add(record(id, { priority: id === 'job-7' ? 1 : 0 }))
      await adapter.add(record('later', { runAt: Date.now() + HOUR_MS, priority: 9 }))
      const first = await adapter.claim(3)
      assert.deepEqual(ids(first.jobs), ['job-7', 'job-0', 'job-1'])
      assert.equal(first.paused, false)
      for (const job of first.jobs) {
        assert.equal(job.info.status, 'running')
        assert.deepEqual(await adapter.get(job.info.id), job)
      }
      const other = reopen ? await reopen() : adapter
      const [two, one, rest] = await Promise.all([adapter.claim(2), other.claimNext(), other.claim!(9)])
      const claimed = [...two.jobs, one!, ...rest.jobs]
      assert.deepEqual(ids(claimed).sort(), ['job-2', 'job-3', 'job-4', 'job-5', 'job-6', 'job-8'])
      assert.deepEqual(await adapter.claim(1), { jobs: [], paused: false })
    },
  },
  {
    name: 'begins what it claims in the same write, or leaves that out, but not what was begun before',
    async run(adapter) {
      if (!adapter.claim) return
      for (const id of ['new', 'again']) await adapter.add(record(id))
      await adapter.update('again', { startedAt: 1, sessionId: 'earlier' })
      const { jobs } = await adapter.claim(5, { begin: { at: 7, sessionIds: ['s0', 's1', 's2'] } })
      const begun = jobs.map(({ info: { id, startedAt, sessionId } }) => [id, startedAt, sessionId])
      if (begun[0]![2] !== undefined) assert.deepEqual(begun[0], ['new', 7, 's0'])
      assert.deepEqual(begun.slice(1), [['again', 1, 'earlier']])
      for (const job of jobs) assert.deepEqual(await adapter.get(job.info.id), job)
    },
  },
  {
    name: 'claims nothing at once when the tokens of the day are used up, what is being charged included',
    async run(adapter) {
      if (!adapter.claim) return
      for (const id of ['a', 'b', 'c']) await adapter.add(record(id))
      const tokens = { day: '2026-01-01', limit: 10 }
      await adapter.addDailyTokens('2026-01-01', 9)
      assert.deepEqual(ids((await adapter.claim(1, { tokens })).jobs), ['a'])
      const charge = { day: '2026-01-01', tokens: 1 }
      const patch: JobPatch = { status: 'succeeded', finishedAt: 1 }
      const [, claimed] = await Promise.all([
        adapter.settle
          ? adapter.settle('a', patch, charge, 'running')
          : adapter.addDailyTokens(charge.day, charge.tokens),
        adapter.claim(2, { tokens }),
      ])
      assert.deepEqual(claimed, { jobs: [], paused: true })
      assert.deepEqual(ids((await adapter.claim(1, { tokens: { day: '2026-01-02', limit: 10 } })).jobs), ['b'])
      assert.deepEqual(ids((await adapter.claim(2)).jobs), ['c'])
    },
  },
  {
    name: 'leaves a job whose time has not come, and what comes after it does not wait',
    async run(adapter) {
      await adapter.add(record('later', { runAt: Date.now() + HOUR_MS, priority: 9 }))
      await adapter.add(record('now'))
      assert.deepEqual(await claimAll(adapter), ['now'])
      await adapter.update('later', { nextRunAt: Date.now() - 1 })
      assert.deepEqual(await claimAll(adapter), ['later'])
    },
  },
  {
    name: 'claims only what is queued',
    async run(adapter) {
      for (const status of ['running', 'parked', 'succeeded', 'failed', 'canceled'] as const)
        await addAs(adapter, status, status)
      assert.equal(await adapter.claimNext(), null)
    },
  },
  {
    name: 'claims a job that is queued again, in the place of its submission',
    async run(adapter) {
      await adapter.add(record('first'))
      await adapter.add(record('second'))
      await adapter.claimNext()
      await adapter.update('first', { status: 'queued', attempt: 2, nextRunAt: Date.now() - 1 })
      const again = await adapter.claimNext()
      assert.deepEqual([again?.info.id, again?.info.attempt], ['first', 2])
      assert.deepEqual(await claimAll(adapter), ['second'])
    },
  },
  {
    name: 'merges a patch, clears what is undefined in it and leaves the rest',
    async run(adapter, reopen) {
      const { info, request } = record('a')
      await adapter.add({ info, request })
      const first = await adapter.update('a', { sessionId: 's1', error: 'x', status: 'running' })
      assert.deepEqual(unnumbered(first), {
        request,
        info: { ...info, sessionId: 's1', error: 'x', status: 'running' },
      })
      const second = await adapter.update('a', { error: undefined })
      assert.ok(second && !('error' in second.info))
      assert.equal(second.info.sessionId, 's1')
      assert.deepEqual(await (reopen ? await reopen() : adapter).get('a'), second)
      assert.equal(await adapter.update('b', { error: 'x' }), null)
    },
  },
  {
    name: 'keeps all that a job goes on with as it was, until it is cleared',
    async run(adapter, reopen) {
      const { info, request } = record('a')
      await adapter.add({ info, request })
      const changed = { request, info: { ...info, ...FULL_PATCH } }
      assert.deepEqual(unnumbered(await adapter.update('a', FULL_PATCH)), changed)
      const seen = reopen ? await reopen() : adapter
      assert.deepEqual(unnumbered(await seen.get('a')), changed)
      assert.deepEqual((await seen.list()).map(unnumbered), [changed])
      const { status, attempt, usage, ...others } = FULL_PATCH
      const cleared = Object.fromEntries(Object.keys(others).map((name) => [name, undefined]))
      await seen.update('a', cleared)
      const { notes: _notes, ...given } = info
      assert.deepEqual(unnumbered(await seen.get('a')), { request, info: { ...given, status, attempt, usage } })
    },
  },
  {
    name: 'changes a job that is expected in another status not at all',
    async run(adapter) {
      await adapter.add(record('a'))
      assert.equal(await adapter.update('a', { status: 'canceled' }, 'running'), null)
      assert.equal((await adapter.get('a'))?.info.status, 'queued')
      assert.equal((await adapter.update('a', { status: 'canceled' }, 'queued'))?.info.status, 'canceled')
      assert.equal(await adapter.claimNext(), null)
    },
  },
  {
    name: 'lets one of two changes through that expect the same status',
    async run(adapter) {
      await adapter.add(record('a'))
      const outcomes = await Promise.all([adapter.claimNext(), adapter.update('a', { status: 'canceled' }, 'queued')])
      assert.equal(outcomes.filter((outcome) => outcome !== null).length, 1)
      await addAs(adapter, 'b', 'running')
      const changes = (['failed', 'canceled', 'parked'] as const).map((status) => ({ status }))
      const changed = await Promise.all(changes.map((patch) => adapter.update('b', patch, 'running')))
      const [through, ...others] = changed.filter((outcome) => outcome !== null)
      assert.deepEqual(others, [])
      assert.deepEqual(await adapter.get('b'), through)
    },
  },
  {
    name: 'changes none of the records that it gave out before',
    async run(adapter) {
      await adapter.add(record('a'))
      const before = await adapter.get('a')
      const copy = structuredClone(before)
      await adapter.update('a', { status: 'canceled', finishedAt: 1 })
      assert.deepEqual(before, copy)
    },
  },
  ...listCases,
  {
    name: 'prunes what has been terminal for long enough, and nothing else',
    async run(adapter, reopen) {
      const old = Date.now() - 2 * HOUR_MS
      await addAs(adapter, 'old', 'succeeded', { finishedAt: old })
      await addAs(adapter, 'old-too', 'canceled', { finishedAt: old })
      await addAs(adapter, 'young', 'failed', { finishedAt: Date.now() })
      await addAs(adapter, 'parked', 'parked', { parkedAt: old })
      await adapter.add(record('waiting', { at: old }))
      assert.equal(await adapter.prune(HOUR_MS), 2)
      assert.equal(await adapter.prune(HOUR_MS), 0)
      assert.deepEqual((await listed(reopen ? await reopen() : adapter)).sort(), ['parked', 'waiting', 'young'])
      assert.equal(await adapter.get('old'), null)
    },
  },
  {
    name: 'gives what has been terminal for long enough, the one that ended first before the others, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.ended) return
      assert.ok(adapter.remove, 'ended comes with remove')
      const old = Date.now() - 2 * HOUR_MS
      await addAs(adapter, 'third', 'succeeded', { finishedAt: old + 2 })
      await addAs(adapter, 'first', 'canceled', { finishedAt: old })
      await addAs(adapter, 'second', 'failed', { finishedAt: old + 1, sessionId: 's2' })
      await addAs(adapter, 'young', 'failed', { finishedAt: Date.now() })
      await addAs(adapter, 'parked', 'parked', { parkedAt: old })
      await adapter.add(record('waiting', { at: old }))
      const opened = reopen ? await reopen() : adapter
      const ended = async (limit: number) => (await opened.ended!(HOUR_MS, limit)).map(({ id }) => id)
      assert.deepEqual(await ended(10), ['first', 'second', 'third'])
      assert.deepEqual(await ended(2), ['first', 'second'])
      assert.deepEqual((await opened.ended!(HOUR_MS, 2))[1], (await opened.get('second'))?.info)
      await opened.remove!('first')
      assert.deepEqual(await ended(1), ['second'])
    },
  },
  {
    name: 'removes a job as if it had never been, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.remove) return
      await adapter.add(record('queued'))
      await addAs(adapter, 'running', 'running')
      await adapter.add(record('stays'))
      for (const id of ['queued', 'running', 'queued', 'unknown']) await adapter.remove(id)
      const after = reopen ? await reopen() : adapter
      assert.deepEqual(await listed(after), ['stays'])
      for (const id of ['queued', 'running']) {
        assert.equal(await after.get(id), null)
        assert.equal(await after.update(id, { status: 'failed' }), null)
      }
      assert.equal((await after.claimNext())?.info.id, 'stays')
      assert.equal(await after.claimNext(), null)
    },
  },
  {
    name: 'tells a job from what it was before, when it counts its changes',
    async run(adapter, reopen) {
      await adapter.add(record('a'))
      const first = await adapter.claimNext()
      if (first?.rev === undefined) return
      await adapter.update('a', { status: 'queued', attempt: 2 }, expectedOf(first))
      const second = (await adapter.claimNext())!
      assert.ok(second.rev! > first.rev)
      assert.equal(await adapter.update('a', { status: 'failed' }, expectedOf(first)), null)
      const opened = reopen ? await reopen() : adapter
      const charge = { day: '2026-01-01', tokens: 7 }
      const late = await opened.settle?.('a', { status: 'failed' }, charge, expectedOf(first))
      if (late) assert.deepEqual(late, { record: null, dailyTokens: 7 })
      assert.deepEqual(await opened.get('a'), second)
      assert.equal((await opened.update('a', { status: 'succeeded' }, expectedOf(second)))?.info.status, 'succeeded')
    },
  },
  {
    name: 'counts the jobs that are not over, by profile and status, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.counts) return
      for (const [id, profile] of [
        ['a', 'one'],
        ['b', 'one'],
        ['c', 'two'],
        ['d', 'two'],
        ['e', 'two'],
      ] as const)
        await adapter.add(record(id, { profile }))
      await adapter.update('b', { status: 'running' })
      await adapter.update('d', { status: 'parked' })
      await adapter.update('e', { status: 'canceled', finishedAt: 1 })
      const counts = await (reopen ? await reopen() : adapter).counts!()
      const found = counts.map(({ profile, status, count }) => `${profile} ${status} ${count}`)
      assert.deepEqual(found.sort(), ['one queued 1', 'one running 1', 'two parked 1', 'two queued 1'])
    },
  },
  {
    name: 'gives the queued jobs that wait for their time, first what falls due first, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.delayed) return
      assert.deepEqual(await adapter.delayed(0, 10), [])
      const later = Date.now() + HOUR_MS
      for (const id of ['third', 'first', 'begins', 'second', 'canceled'])
        await adapter.add(record(id, { runAt: later }))
      await adapter.add(record('ready'))
      await adapter.add(record('due', { runAt: 1 }))
      await adapter.update('third', { nextRunAt: later + 3 })
      await adapter.update('second', { nextRunAt: later + 1 })
      await adapter.update('begins', { nextRunAt: undefined })
      await adapter.update('canceled', { status: 'canceled', nextRunAt: undefined, finishedAt: 1 })
      while (await adapter.claimNext());
      const opened = reopen ? await reopen() : adapter
      const waiting = [
        { id: 'first', nextRunAt: later },
        { id: 'second', nextRunAt: later + 1 },
        { id: 'third', nextRunAt: later + 3 },
      ]
      assert.deepEqual(await opened.delayed!(2, 10), waiting)
      assert.deepEqual(await opened.delayed!(2, 2), waiting.slice(0, 2))
      assert.deepEqual(await opened.delayed!(later, 2), waiting.slice(1))
    },
  },
  {
    name: 'gives the queued jobs in the order in which they are claimed, when it offers that',
    async run(adapter, reopen) {
      if (!adapter.next) return
      assert.deepEqual(await adapter.next(10), [])
      const later = Date.now() + HOUR_MS
      await adapter.add(record('latest', { runAt: later + 1, priority: 9 }))
      await adapter.add(record('later', { runAt: later, profile: 'two' }))
      await adapter.add(record('begun'))
      await adapter.claimNext()
      await adapter.add(record('first'))
      await adapter.add(record('second', { profile: 'two' }))
      await adapter.add(record('urgent', { priority: 1 }))
      await adapter.add(record('due', { runAt: 1, priority: 2 }))
      const opened = reopen ? await reopen() : adapter
      assert.deepEqual(await opened.next!(10), ['due', 'urgent', 'first', 'second', 'later', 'latest'])
      assert.deepEqual(await opened.next!(3), ['due', 'urgent', 'first'])
      assert.deepEqual(await opened.next!(10, ['two']), ['second', 'later'])
      assert.deepEqual(await opened.next!(10, []), [])
    },
  },
  {
    name: 'gives the jobs that are under way here, page by page, when it offers that',
    async run(adapter) {
      if (!adapter.owned) return
      const owned = async () => {
        const found: JobRecord[] = []
        for await (const page of adapter.owned!()) found.push(...page)
        return found
      }
      for (const id of ['waits', 'parks', 'retries', 'ends', 'runs']) await adapter.add(record(id))
      assert.deepEqual(await owned(), [])
      await adapter.update('waits', { nextRunAt: Date.now() + HOUR_MS })
      while (await adapter.claimNext());
      await adapter.update('parks', { status: 'parked' })
      await adapter.update('retries', { status: 'queued' })
      await adapter.update('ends', { status: 'failed', finishedAt: 1 })
      assert.deepEqual(ids(await owned()), ['parks', 'runs'])
      assert.deepEqual(await owned(), [await adapter.get('parks'), await adapter.get('runs')])
    },
  },
  {
    name: 'counts tokens per day, and loses none of what is added at once',
    async run(adapter, reopen) {
      assert.equal(await adapter.dailyTokens('2026-01-01'), 0)
      const totals = await Promise.all(Array.from({ length: 20 }, () => adapter.addDailyTokens('2026-01-01', 5)))
      assert.equal(Math.max(...totals), 100)
      assert.equal(await adapter.addDailyTokens('2026-01-02', 1), 1)
      const opened = reopen ? await reopen() : adapter
      assert.equal(await opened.dailyTokens('2026-01-01'), 100)
      // more than 32 bits in a day, and what was charged for nothing is taken back
      assert.equal(await opened.addDailyTokens('2026-01-01', 5_000_000_000), 5_000_000_100)
      assert.equal(await opened.addDailyTokens('2026-01-01', -100), 5_000_000_000)
      assert.equal(await opened.dailyTokens('2026-01-01'), 5_000_000_000)
    },
  },
  {
    name: 'settles an attempt and its tokens in one write, when it offers that',
    async run(adapter) {
      if (!adapter.settle) return
      await addAs(adapter, 'a', 'running')
      const charge = { day: '2026-01-01', tokens: 7 }
      const done = await adapter.settle('a', { status: 'succeeded', finishedAt: 1 }, charge, 'running')
      assert.equal(done.record?.info.status, 'succeeded')
      assert.equal(done.dailyTokens, 7)
      const late = await adapter.settle('a', { status: 'failed' }, charge, 'running')
      assert.deepEqual(late, { record: null, dailyTokens: 14 })
      assert.equal((await adapter.get('a'))?.info.status, 'succeeded')
      const { info, request } = record('b')
      await adapter.add({ info, request })
      const full = await adapter.settle('b', FULL_PATCH, charge, 'queued')
      assert.deepEqual(unnumbered(full.record), { request, info: { ...info, ...FULL_PATCH } })
      assert.deepEqual(await adapter.get('b'), full.record)
      const again = await adapter.settle('b', { status: 'queued', error: undefined, sessionId: undefined }, charge)
      const { error: _error, sessionId: _sessionId, ...left } = FULL_PATCH
      assert.deepEqual(unnumbered(again.record), { request, info: { ...info, ...left, status: 'queued' } })
    },
  },
]
