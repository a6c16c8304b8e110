import t, { type Test } from 'tap'
import { GatewayError } from '../../src/errors.js'
import { type JobRecord, listJobs, type QueueAdapter, selectJobs } from '../../src/jobs/adapter.js'
import { jobPage } from '../../src/jobs/job-page.js'
import { shown } from '../../src/jobs/patch.js'
import { Retention } from '../../src/jobs/retention.js'
import { silentLogger } from '../../src/lib/logger.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { until } from '../fixtures/build.js'
import { FakeSessions, jobRequest, jobWorld } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { type ListWorld, walksEachRowOnce } from '../fixtures/walked-pages.js'
import { jobOf } from '../storage/sqlite-records.js'
import { sqliteWorld } from '../storage/sqlite-world.js'

const jobAt = (id: string, createdAt: number): JobRecord => {
  const { request, info } = jobOf(id)
  return { request, info: { ...info, createdAt } }
}

const idsOf = (records: readonly { id: string }[]) => records.map(({ id }) => id)

/** @param adapterOf as the process sees it that runs now */
function jobList(adapterOf: () => QueueAdapter, restart: () => Promise<unknown>): ListWorld {
  let now = 1_760_000_000_000
  let count = 0
  return {
    async create() {
      const id = `j${++count}`
      await adapterOf().add(jobAt(id, now))
      return id
    },
    async remove(id) {
      await adapterOf().update(id, { status: 'canceled', finishedAt: 0 })
      await adapterOf().prune(1)
    },
    async restart() {
      await restart()
    },
    async turnClock(ms) {
      now += ms
    },
    async page(query) {
      const { items, next } = await jobPage(adapterOf(), query, UNLIMITED, shown)
      return { ids: idsOf(items), next }
    },
    async end() {},
  }
}

t.test('no job is left out of the pages when the clock goes back', async (t) => {
  await t.test('in memory', (t) =>
    walksEachRowOnce(t, async () => {
      const adapter = createMemoryQueueAdapter()
      return jobList(
        () => adapter,
        async () => {},
      )
    }),
  )
  await t.test('in SQLite, over restarts', (t) =>
    walksEachRowOnce(t, async () => {
      const world = await sqliteWorld(t)
      const list = jobList(
        () => world.storage.queue,
        () => world.reopen(),
      )
      return { ...list, end: () => world.storage.close() }
    }, [4, 40]),
  )
})

/** Adapters that are not ours: their records say nothing of the order. */
async function foreign(
  t: Test,
  list: (records: JobRecord[], filter: Parameters<QueueAdapter['list']>[0]) => JobRecord[],
) {
  const newestFirst: JobRecord[] = []
  const adapter: QueueAdapter = { ...createMemoryQueueAdapter(), list: async (filter) => list(newestFirst, filter) }
  for (const [index, at] of [5000, 9000, 2000, 2000, 8000, 1000, 4000].entries())
    newestFirst.unshift(jobAt(`j${index}`, at))
  const seen: string[] = []
  for (let cursor: string | undefined, page = 0; page < 9; page++) {
    const { items, next } = await jobPage(
      adapter,
      { limit: 2, ...(cursor !== undefined && { cursor }) },
      UNLIMITED,
      shown,
    )
    seen.push(...idsOf(items))
    cursor = next
    if (next === undefined) break
  }
  t.equal(seen.length, newestFirst.length)
  t.same(new Set(seen), new Set(newestFirst.map(({ info }) => info.id)))
  return seen
}

t.test('pages of an adapter that does not number its jobs are complete, too', async (t) => {
  await t.test('in the order of submission, its own', async (t) => {
    const seen = await foreign(t, (records, { after, limit } = {}) => {
      const from = after ? records.findIndex(({ info }) => info.id === after.id) + 1 : 0
      return records.slice(from, from + (limit ?? records.length))
    })
    t.same(seen, ['j6', 'j5', 'j4', 'j3', 'j2', 'j1', 'j0'])
  })
  await t.test('by time', (t) => foreign(t, (records, filter) => selectJobs(records, filter)))
  await t.test('when it gives all that it has', (t) => foreign(t, (records) => records))
})

t.test(
  'what runs next is a page of about 1 MiB, of what the caller may see, and nobody waits for it for ever',
  async (t) => {
    const inner = createMemoryQueueAdapter()
    let isSilent = false
    const get: QueueAdapter['get'] = (id) => (isSilent ? new Promise(() => {}) : inner.get(id))
    // an adapter that does not select
    const adapter: QueueAdapter = { ...inner, next: (limit) => inner.next!(limit), get }
    const { queue, clock } = await jobWorld(t, { adapter, maxConcurrency: 1 })
    const meta = { note: 'x'.repeat(16_000) }
    const session = { cwd: '/srv/work', prompt: 'go', profile: 'two' }
    for (let count = 0; count < 80; count++) await queue.submit(jobRequest({ session, meta }))
    const first = await queue.next({ limit: 200 })
    t.equal(first.length, Math.floor(2 ** 20 / JSON.stringify(first[0]).length))
    t.same(await queue.next({}, { allowedProfiles: ['one'] }), [])
    isSilent = true
    const asked = queue.next()
    asked.catch(() => {})
    await clock.advance(8_000)
  },
)

t.test('a cursor of an earlier version goes on', async (t) => {
  const adapter = createMemoryQueueAdapter()
  for (const [id, at] of Object.entries({ a: 3000, b: 1000, c: 2000 })) await adapter.add(jobAt(id, at))
  const { items } = await jobPage(adapter, { cursor: Buffer.from('1000.b').toString('base64url') }, UNLIMITED, shown)
  t.same(idsOf(items), ['a'])
})

for (const isRead of [false, true])
  t.test(
    `jobs that ended in an earlier process are all forgotten in time, ${isRead ? 'of an adapter that lists them at the start' : 'and none is read before'}`,
    async (t) => {
      const clock = new VirtualClock()
      const { ended, ...adapter } = createMemoryQueueAdapter({ now: () => clock.now() })
      const count = 1100
      for (let index = 0; index < count; index++) {
        await adapter.add(jobAt(`j${index}`, 1_000_000 + ((index * 7919) % count)))
        await adapter.update(`j${index}`, { status: 'canceled', finishedAt: clock.now() })
      }
      t.equal((await listJobs(adapter, {})).length, count)
      let listed = 0
      const list: QueueAdapter['list'] = (filter) => {
        listed++
        return adapter.list(filter)
      }
      const forgotten = new Set<string>()
      const retention = new Retention({
        ...{ clock, logger: silentLogger, maxAgeMs: 1000, sweepIntervalMs: 100 },
        adapter: { ...adapter, list, ...(!isRead && { ended }) },
        sessions: new FakeSessions(clock),
        onForgotten: (id) => forgotten.add(id),
      })
      t.teardown(() => retention.stop())
      await retention.start()
      t.equal(listed, isRead ? 3 : 0)
      await clock.advance(1100)
      t.equal(forgotten.size, count)
      t.same(await adapter.list(), [])
    },
  )

t.test('nothing is forgotten, nor is the adapter asked, before the queue has started', async (t) => {
  const clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  const asked: number[] = []
  const retention = new Retention({
    ...{ clock, logger: silentLogger, maxAgeMs: 1000, sweepIntervalMs: 1000, onForgotten: () => {} },
    adapter: {
      ...adapter,
      ended: async (maxAgeMs) => {
        asked.push(maxAgeMs)
        return []
      },
    },
    sessions: new FakeSessions(clock),
  })
  t.teardown(() => retention.stop())
  await clock.advance(5_000)
  t.strictSame(asked, [])
  await retention.start()
  await clock.advance(1_000)
  t.strictSame(asked, [1000])
})

t.test('old jobs whose sessions cannot be removed keep no other from being forgotten', async (t) => {
  const clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  for (let index = 0; index < 1_600; index++) {
    await adapter.add(jobAt(`j${index}`, 1_000_000 + index))
    const sessionId = index % 600 === 0 ? 'stuck' : 'gone'
    await adapter.update(`j${index}`, { status: 'canceled', finishedAt: clock.now(), sessionId })
  }
  const sessions = new FakeSessions(clock)
  sessions.close = async (id) => {
    throw id === 'stuck' ? new Error('its files are somebody else’s') : new GatewayError('SG_ERR_SESSION_NOT_FOUND')
  }
  const errors: unknown[] = []
  const retention = new Retention({
    ...{ clock, maxAgeMs: 1000, sweepIntervalMs: 1000, adapter, sessions, onForgotten: () => {} },
    logger: { ...silentLogger, error: (error: unknown) => void errors.push(error) },
  })
  t.teardown(() => retention.stop())
  await retention.start()
  await clock.advance(1000)
  await until(() => errors.length > 0, 'the end of the sweep')
  t.same(idsOf((await adapter.list()).map(({ info }) => info)), ['j1200', 'j600', 'j0'])
  t.equal(errors.length, 1)
})

t.test(
  'an old job whose session cannot be removed keeps no other, of an adapter that prunes by age alone',
  async (t) => {
    const clock = new VirtualClock()
    const { ended: _none, ...adapter } = createMemoryQueueAdapter({ now: () => clock.now() })
    for (let index = 0; index < 1_200; index++) {
      await adapter.add(jobAt(`j${index}`, 1_000_000 + index))
      const sessionId = index === 600 ? 'stuck' : `of j${index}`
      await adapter.update(`j${index}`, { status: 'canceled', finishedAt: clock.now(), sessionId })
    }
    const sessions = new FakeSessions(clock)
    let [isStuck, isDown] = [true, true]
    let closed: string[] = []
    sessions.close = async (id) => {
      closed.push(id)
      if (isDown || (isStuck && id === 'stuck')) throw new Error('as the disk says')
      throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    }
    const errors: unknown[] = []
    const forgotten = new Set<string>()
    const retention = new Retention({
      ...{ clock, maxAgeMs: 1000, sweepIntervalMs: 1000, adapter, sessions, onForgotten: (id) => forgotten.add(id) },
      logger: { ...silentLogger, error: (error: unknown) => void errors.push(error) },
    })
    t.teardown(() => retention.stop())
    await retention.start()
    const sweeps = async (count: number) => {
      closed = []
      await clock.advance(1000)
      await until(() => errors.length === count, `the end of sweep ${count}`)
    }
    await sweeps(1)
    t.equal((await adapter.list()).length, 1_200, 'of a storage that takes nothing nothing is lost')
    isDown = false
    await sweeps(2)
    t.same(await adapter.list(), [])
    t.equal(forgotten.size, 1_199)
    await sweeps(3)
    t.same(closed, ['stuck'], 'what stays is tried again')
    isStuck = false
    closed = []
    await clock.advance(1000)
    await until(() => forgotten.size === 1_200, 'the last one')
    await clock.advance(1000)
    t.same(closed, ['stuck'])
  },
)

t.test(
  'a sweep that is under way at the end leaves the rest to the next process, of such an adapter, too',
  async (t) => {
    const clock = new VirtualClock()
    const { ended: _none, ...adapter } = createMemoryQueueAdapter({ now: () => clock.now() })
    for (let index = 0; index < 1_200; index++) {
      await adapter.add(jobAt(`j${index}`, 1_000_000 + index))
      await adapter.update(`j${index}`, { status: 'canceled', finishedAt: clock.now(), sessionId: `of j${index}` })
    }
    const sessions = new FakeSessions(clock)
    let letGo = () => {}
    const closed: string[] = []
    sessions.close = (id) => {
      closed.push(id)
      return new Promise<void>((resolve) => {
        const before = letGo
        letGo = () => {
          before()
          resolve()
        }
      })
    }
    let pruned = 0
    const prune = async () => ++pruned
    const retention = new Retention({
      ...{ clock, logger: silentLogger, maxAgeMs: 1000, sweepIntervalMs: 1000, sessions, onForgotten: () => {} },
      adapter: { ...adapter, prune },
    })
    await retention.start()
    await clock.advance(1000)
    t.equal(closed.length, 500)
    retention.stop()
    letGo()
    await new Promise(setImmediate)
    t.equal(closed.length, 500)
    t.equal(pruned, 0, 'nor are jobs removed whose sessions are there')
  },
)

t.test('the cursor of a caller with limits says nothing of the jobs of others', async (t) => {
  const world = await sqliteWorld(t)
  const { queue } = world.storage
  const submit = (id: string, profile: string) => {
    const { request, info } = jobAt(id, 1_760_000_000_000)
    return queue.add({ request, info: { ...info, profile } })
  }
  for (let n = 0; n < 5; n++) {
    await submit(`own-${n}`, 'own')
    for (let m = 0; m < n; m++) await submit(`other-${n}-${m}`, 'other')
  }
  const limited = { allowedProfiles: ['own'] }
  const page = (cursor?: string, limit = 2) => jobPage(queue, { limit, ...(cursor && { cursor }) }, limited, shown)
  const textOf = (cursor: string) => Buffer.from(cursor, 'base64url').toString()

  await t.test('it names the last job of the page alone, and goes on behind it', async (t) => {
    const first = await page()
    t.same(idsOf(first.items), ['own-4', 'own-3'])
    t.equal(textOf(first.next!), '1760000000000.own-3')
    const second = await page(first.next)
    t.same(idsOf(second.items), ['own-2', 'own-1'])
    t.same(idsOf((await page(second.next)).items), ['own-0'])
  })

  await t.test('one that was given out before goes on, and a place that is made up finds nothing out', async (t) => {
    const placed = (position: number, id: string) =>
      Buffer.from(`1760000000000.${position}.${id}`).toString('base64url')
    for (const position of [1, 7, 1_000]) {
      t.same(idsOf((await page(placed(position, 'own-2'), 5)).items), ['own-1', 'own-0'])
      t.equal((await page(placed(position, 'nobody-knows'), 5)).items.length, 5)
    }
  })

  await t.test('a caller who sees all has the place in it, by which it goes on when the job is gone', async (t) => {
    const { next } = await jobPage(queue, { limit: 2 }, UNLIMITED, shown)
    t.match(textOf(next!), /^1760000000000\.\d+\.other-4-2$/)
  })
  await world.storage.close()
})
