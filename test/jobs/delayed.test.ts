import t from 'tap'
import type { JobFilter, QueueAdapter } from '../../src/jobs/adapter.js'
import { newJob } from '../../src/jobs/job.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** More than a queue asks for at once. */
const MANY = 2_500

/** What an earlier process left: jobs that wait for their time, one each second. */
async function left({ ready = 0, delayed = MANY } = {}) {
  const clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  const add = (id: string, nextRunAt?: number) => {
    const request = jobRequest()
    const info = newJob(request, { id, now: clock.now(), profile: 'one', generation: 'g1', cwd: '/srv/work' })
    return adapter.add({ request, info: { ...info, ...(nextRunAt !== undefined && { nextRunAt }) } })
  }
  for (let index = 0; index < ready; index++) await add(`ready-${index}`)
  for (let index = 1; index <= delayed; index++) await add(`delayed-${index}`, clock.now() + index * 1_000)
  const listed: JobFilter[] = []
  const asked: [after: number, limit: number][] = []
  const watched: QueueAdapter = {
    ...adapter,
    list: async (filter = {}) => {
      listed.push(filter)
      return adapter.list(filter)
    },
    delayed: async (after, limit) => {
      asked.push([after, limit])
      return adapter.delayed!(after, limit)
    },
  }
  return { clock, adapter: watched, listed, asked }
}

t.test('a job with runAt waits for its time, and what comes after it does not wait', async (t) => {
  const { queue, sessions, clock } = await jobWorld(t)
  const later = await queue.submit(jobRequest({ runAt: clock.now() + 60 * 86_400_000, priority: 9 }))
  t.equal(later.nextRunAt, clock.now() + 60 * 86_400_000)
  const now = await queue.submit(jobRequest())
  await settle()
  t.same(
    sessions.all.map(({ info }) => info.jobId),
    [now.id],
  )
  sessions.last.complete()
  await clock.advance(59 * 86_400_000)
  t.equal(sessions.all.length, 1, 'a deadline beyond 24.8 days does not fire at once')
  await clock.advance(86_400_000)
  t.equal(sessions.last.info.jobId, later.id)
  t.notOk((await queue.get(later.id))?.nextRunAt)
})

t.test(
  'a job that fell due while no slot was free waits for its time again when the clock was set back since',
  async (t) => {
    const { queue, sessions, clock } = await jobWorld(t, { maxConcurrency: 1 })
    await queue.submit(jobRequest())
    const later = await queue.submit(jobRequest({ runAt: clock.now() + 100 }))
    await clock.advance(200)
    clock.set(-1_000)
    sessions.last.complete()
    await settle()
    t.match(await queue.get(later.id), { status: 'queued' })
    await clock.advance(1_000)
    t.match(await queue.get(later.id), { status: 'running' })
  },
)

t.test(
  'a job that was due when the process began waits for its time again when the clock is set back right after',
  async (t) => {
    const { clock, adapter } = await left({ delayed: 1 })
    await clock.advance(1_500)
    let isSetBack = false
    const setBack: QueueAdapter = {
      ...adapter,
      delayed: async (after, limit) => {
        const found = await adapter.delayed!(after, limit)
        if (!isSetBack) clock.set(-1_000)
        isSetBack = true
        return found
      },
    }
    const { queue } = await jobWorld(t, { clock, adapter: setBack })
    await settle()
    t.match(await queue.get('delayed-1'), { status: 'queued' })
    await clock.advance(1_000)
    await settle()
    t.match(await queue.get('delayed-1'), { status: 'running' })
  },
)

t.test(
  'queued jobs of an earlier process stay in the adapter, are counted, and run when it is their turn',
  async (t) => {
    const { clock, adapter, listed } = await left({ ready: 40, delayed: 5 })
    const { queue, sessions } = await jobWorld(t, { clock, adapter, maxConcurrency: 4, maxQueuedJobs: 45 })
    t.same(listed, [{ status: ['running', 'parked'] }])
    await settle()
    t.match(await queue.stats(), { queued: 41, running: 4, parked: 0 })
    sessions.onCreate = (session) => void setImmediate(() => session.complete())
    for (const session of [...sessions.all]) session.complete()
    while ((await queue.stats()).queued > 5) await settle()
    await clock.advance(2_000)
    while ((await queue.stats()).running > 0) await settle()
    t.match(await queue.stats(), { queued: 3, running: 0 })
    t.match(await queue.cancel('delayed-5'), { status: 'canceled' })
    t.match(await queue.stats(), { queued: 2 })
    await clock.advance(10_000)
    while ((await queue.stats()).running > 0) await settle()
    t.match(await queue.stats(), { queued: 0, running: 0 })
    t.equal(sessions.all.length, 44)
  },
)

t.test('a queue that is full of jobs of an earlier process takes no more', async (t) => {
  const { clock, adapter } = await left({ delayed: 3 })
  const { queue } = await jobWorld(t, { clock, adapter, maxQueuedJobs: 3 })
  await t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_TOO_MANY' })
  await queue.cancel('delayed-2')
  t.match(await queue.submit(jobRequest()), { status: 'queued' })
})

t.test('each of many jobs that wait for their time begins at it, a page of them known at a time', async (t) => {
  const { clock, adapter, asked } = await left()
  const { sessions, queue } = await jobWorld(t, { clock, adapter, maxConcurrency: 10 })
  const begunAt: number[] = []
  const start = clock.now()
  sessions.onCreate = (session) => {
    begunAt.push(clock.now() - start)
    setImmediate(() => session.complete())
  }
  t.equal(asked.length, 1)
  const done = async (count: number) => {
    while (begunAt.length < count || (await queue.stats()).running > 0) await settle()
  }
  for (let second = 1; second <= MANY; second++) {
    await clock.advance(1_000)
    await done(second)
  }
  t.same(
    begunAt,
    Array.from({ length: MANY }, (_, index) => (index + 1) * 1_000),
  )
  t.ok(asked.length <= 3, `asked ${asked.length} times`)
})

t.test('those behind a page are known once those of it are gone, and what comes to wait meanwhile is', async (t) => {
  const { clock, adapter, asked } = await left()
  const { queue, job, sessions } = await jobWorld(t, { clock, adapter })
  let fails = 1
  const { delayed } = adapter
  adapter.delayed = async (...args) => {
    if (fails-- > 0) throw new Error('not now')
    return delayed!(...args)
  }
  for (let index = 1; index <= MANY; index++) if (index !== 2_100) await queue.cancel(`delayed-${index}`)
  await clock.advance(60_000)
  await settle()
  t.ok(asked.length > 1)
  t.equal(sessions.all.length, 0)
  await clock.advance(2_100_000 - 60_000)
  await settle()
  t.match(await job({ id: 'delayed-2100' } as never), { status: 'running' })
})

t.test(
  'slots that are taken when all that waited has fallen due leave nothing to look for again and again',
  async (t) => {
    const { clock, adapter, asked } = await left()
    const { queue } = await jobWorld(t, { clock, adapter, maxConcurrency: 1 })
    await clock.advance(MANY * 1_000)
    await settle()
    t.match(await queue.stats(), { queued: MANY - 1, running: 1 })
    t.ok(asked.length <= 4, `asked ${asked.length} times`)
  },
)
