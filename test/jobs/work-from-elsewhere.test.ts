import t, { type Test } from 'tap'
import { newJob } from '../../src/jobs/job.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

interface Adapter {
  /** Whether it counts jobs by itself. */
  counts: boolean
  /** Whether it tells of work; default true. */
  tells?: boolean
  maxQueuedJobs?: number
}

/** A queue whose adapter others use, too. */
async function build(t: Test, { counts, tells = true, maxQueuedJobs }: Adapter) {
  const clock = new VirtualClock()
  const { add, claimNext, get, list, update, prune, addDailyTokens, dailyTokens, ...more } = createMemoryQueueAdapter({
    now: () => clock.now(),
  })
  let tell = () => {}
  const onWork = (listener: () => void) => {
    tell = listener
    return () => {}
  }
  const plain = { add, claimNext, get, list, update, prune, addDailyTokens, dailyTokens, ...(tells && { onWork }) }
  const adapter = counts ? { ...plain, counts: more.counts!, delayed: more.delayed! } : plain
  const world = await jobWorld(t, { clock, adapter, ...(maxQueuedJobs && { maxQueuedJobs }) })
  let jobs = 0
  const addElsewhere = async () => {
    const given = { id: `${++jobs}`, now: clock.now(), profile: 'one', generation: 'g1', cwd: '/' }
    await add({ info: newJob(jobRequest(), given), request: jobRequest() })
    tell()
    await settle()
  }
  return { ...world, adapter, tell: () => tell(), addElsewhere, claimElsewhere: claimNext }
}

for (const counts of [true, false]) {
  const name = counts ? 'an adapter that counts' : 'an adapter that is to be counted'

  t.test(
    `${name}: jobs that another process added are counted while they wait and no more once they run`,
    async (t) => {
      const { queue, sessions, clock, addElsewhere } = await build(t, { counts })
      await addElsewhere()
      t.match(await queue.stats(), { queued: 0, running: 1 })
      await addElsewhere()
      await addElsewhere()
      await clock.advance(1_000)
      t.match(await queue.stats(), { queued: 2, running: 1 })
      for (const queued of [1, 0]) {
        sessions.last.complete()
        await settle(8)
        t.match(await queue.stats(), { queued, running: 1 })
      }
    },
  )
}

t.test('an adapter that does not answer a submission keeps nobody from asking for the counts', async (t) => {
  const { queue, adapter, clock, tell } = await build(t, { counts: true })
  adapter.add = () => new Promise(() => {})
  const submitted = t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await settle()
  tell()
  const stats = queue.stats()
  await clock.advance(PATIENCE_MS)
  await submitted
  t.match(await stats, { queued: 0, running: 0 })
})

t.test('without onWork: who was given the job of another process looks for its own when that is over', async (t) => {
  const { queue, sessions, job, addElsewhere } = await build(t, { counts: false, tells: false })
  await addElsewhere()
  await addElsewhere()
  const own = await queue.submit(jobRequest())
  await settle(8)
  for (let before = 0; before < 2; before++) {
    t.match(await job(own), { status: 'queued' })
    sessions.last.complete()
    await settle(8)
  }
  t.match(await job(own), { status: 'running' })
})

for (const adapter of [{ counts: true }, { counts: false }, { counts: false, tells: false }])
  t.test(
    `jobs that another process has claimed leave their places in the queue: ${JSON.stringify(adapter)}`,
    async (t) => {
      const { queue, sessions, clock, claimElsewhere } = await build(t, { ...adapter, maxQueuedJobs: 2 })
      await queue.submit(jobRequest())
      await settle()
      await queue.submit(jobRequest())
      await queue.submit(jobRequest())
      await t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_TOO_MANY' })
      t.ok(await claimElsewhere())
      t.ok(await claimElsewhere())
      sessions.last.complete()
      await settle(8)
      await clock.advance(1_000)
      t.match(await queue.stats(), { queued: 0, running: 0 })
      await queue.submit(jobRequest())
      await settle()
      await queue.submit(jobRequest())
      t.match(await queue.stats(), { queued: 1, running: 1 })
    },
  )
