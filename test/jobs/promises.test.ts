import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import type { JobPatch } from '../../src/jobs/adapter.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** An adapter whose writes wait while it is held. */
function heldAdapter(clock: VirtualClock) {
  const inner = createMemoryQueueAdapter({ now: () => clock.now() })
  let gate = Promise.resolve()
  let open = () => {}
  const hold = () => {
    gate = new Promise((resolve) => {
      open = resolve
    })
  }
  const adapter = {
    ...inner,
    add: async (...given: Parameters<typeof inner.add>) => {
      await gate
      return inner.add(...given)
    },
    remove: async (...given: Parameters<NonNullable<typeof inner.remove>>) => {
      await gate
      return inner.remove!(...given)
    },
    update: async (...given: Parameters<typeof inner.update>) => {
      await gate
      return inner.update(...given)
    },
    settle: async (...given: Parameters<NonNullable<typeof inner.settle>>) => {
      await gate
      return inner.settle!(...given)
    },
  }
  return { adapter, inner, hold, release: () => open() }
}

t.test('nobody is told of a step of a job before it is durable', async (t) => {
  const clock = new VirtualClock()
  const { adapter, hold, release } = heldAdapter(clock)
  const { queue, sessions, told } = await jobWorld(t, { clock, adapter })
  const steps: [what: string, does: () => unknown, tells: string][] = [
    ['started', () => {}, 'started'],
    ['parked', () => sessions.last.park(), 'parked'],
    ['woken', () => sessions.last.wake(), 'resumed'],
    ['over', () => sessions.last.complete({ isError: true, subtype: 'error_during_execution' }), 'retrying'],
  ]
  hold()
  const submitted = queue.submit(jobRequest({ attempts: 2 }))
  await settle()
  const seen: string[] = []
  queue.on('job_event', ({ event }) => void seen.push(event.type))
  t.same(seen, [], 'not submitted')
  release()
  const job = await submitted
  await settle()
  for (const [what, does, tells] of steps.slice(1)) {
    hold()
    const before = told(job)
    does()
    await settle()
    t.same(told(job), before, `${what}, and not told yet`)
    release()
    await settle()
    t.same(told(job), [...before, tells], `${what} and told`)
  }
})

t.test('the time that a run used before it parked counts toward its limit', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t, { maxJobDurationMs: 10_000 })
  const submitted = await queue.submit(jobRequest())
  await settle()
  await clock.advance(7_000)
  sessions.last.park()
  await settle()
  await clock.advance(1_000_000)
  sessions.last.wake()
  await settle()
  await clock.advance(2_999)
  t.same(sessions.last.interrupts, [])
  await clock.advance(1)
  t.equal(sessions.last.interrupts.length, 1, 'ten seconds in two legs')
  await settle()
  t.match(await job(submitted), { status: 'failed', error: 'The run took longer than 10000 ms.' })
})

/** With an adapter that charges tokens in the write that ends an attempt, and with one that cannot. */
for (const settles of [true, false])
  t.test(
    `a job that somebody else has ended is not brought back, nor told of${settles ? '' : ', in two writes'}`,
    async (t) => {
      const clock = new VirtualClock()
      const { adapter: full, inner } = heldAdapter(clock)
      const { settle: _inOne, ...inTwo } = full
      const adapter = settles ? full : inTwo
      const outbox = createMemoryDeliveryOutbox()
      const { queue, sessions, told } = await jobWorld(t, { clock, adapter, outbox })
      const kept = async () => (await outbox.list()).length
      const webhook = { url: 'http://127.0.0.1:9/' }
      const job = await queue.submit(jobRequest({ webhook }))
      await settle()
      const before = { told: told(job), kept: await kept() }
      // another process has it by now
      const taken: JobPatch = { status: 'canceled', finishedAt: clock.now() }
      await inner.update(job.id, taken)
      sessions.last.park()
      await settle()
      t.match((await inner.get(job.id))?.info, { status: 'canceled' })
      sessions.last.complete()
      await settle()
      t.match((await inner.get(job.id))?.info, { status: 'canceled' })
      t.same(told(job), before.told)
      t.equal(await kept(), before.kept, 'nothing more is on its way to the webhook')
    },
  )

t.test(
  'a submission that its adapter refuses and stores all the same hurts no other job, and is taken back',
  async (t) => {
    const inner = createMemoryQueueAdapter()
    let refuse = () => {}
    const refused = new Promise<never>((_, reject) => {
      refuse = () => reject(new Error('the connection was lost'))
    })
    let isFirst = true
    const add: typeof inner.add = async (...given) => {
      await inner.add(...given)
      if (!isFirst) return
      isFirst = false
      await refused
    }
    const { queue, sessions, told } = await jobWorld(t, { adapter: { ...inner, add }, maxConcurrency: 2 })
    const first = queue.submit(jobRequest())
    await settle()
    const other = await queue.submit(jobRequest())
    refuse()
    await t.rejects(first)
    await settle()
    t.same(told(other), ['submitted', 'started'])
    sessions.last.complete()
    await settle()
    t.same(told(other), ['submitted', 'started', 'completed'])
    t.same(
      (await inner.list({})).map(({ info }) => info.id),
      [other.id],
    )
  },
)

t.test('a queue that closes waits until a refused submission is taken back that was claimed', async (t) => {
  const inner = createMemoryQueueAdapter()
  let refuse = () => {}
  const refused = new Promise<never>((_, reject) => {
    refuse = () => reject(new Error('the connection was lost'))
  })
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let isFirst = true
  const add: typeof inner.add = async (...given) => {
    await inner.add(...given)
    if (!isFirst) return
    isFirst = false
    await refused
  }
  const remove = (id: string) => gate.then(() => inner.remove!(id))
  const { queue, sessions } = await jobWorld(t, { adapter: { ...inner, add, remove }, maxConcurrency: 2 })
  const first = t.rejects(queue.submit(jobRequest()))
  await settle()
  const other = await queue.submit(jobRequest())
  refuse()
  await first
  await settle()
  sessions.last.complete()
  await settle()
  let isClosed = false
  const closed = queue.close().then(() => {
    isClosed = true
  })
  await settle()
  t.notOk(isClosed, 'the storage has not answered')
  open()
  await closed
  t.same(
    (await inner.list({})).map(({ info }) => info.id),
    [other.id],
    'nothing of it is left to the next process',
  )
})

t.test('a queue that closes waits until a refused submission is taken back', async (t) => {
  const clock = new VirtualClock()
  const { adapter, inner, hold, release } = heldAdapter(clock)
  const { queue } = await jobWorld(t, { clock, adapter })
  hold()
  const refused = t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await settle()
  await clock.advance(PATIENCE_MS)
  await refused
  let isClosed = false
  const closed = queue.close().then(() => {
    isClosed = true
  })
  await settle()
  t.notOk(isClosed, 'the storage has not answered')
  release()
  hold()
  await settle()
  t.equal((await inner.list({})).length, 1, 'it has kept what was refused')
  t.notOk(isClosed)
  release()
  await closed
  t.same(await inner.list({}), [], 'nothing of it is left to the next process')
})

t.test('a refused submission that was claimed before it was taken back is not begun', async (t) => {
  const clock = new VirtualClock()
  const { adapter, inner, hold, release } = heldAdapter(clock)
  let answer = () => {}
  const answers = new Promise<void>((resolve) => {
    answer = resolve
  })
  let claimed = 0
  const claim: NonNullable<typeof inner.claim> = async (...given) => {
    const taken = await inner.claim!(...given)
    claimed += taken.jobs.length
    if (claimed > 0) await answers
    return taken
  }
  const { queue, sessions } = await jobWorld(t, { clock, adapter: { ...adapter, claim } })
  // it is counted, so that the adapter is asked
  await queue.submit(jobRequest({ runAt: clock.now() + 1_000_000 }))
  hold()
  const refused = t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await settle()
  await clock.advance(PATIENCE_MS)
  await refused
  release()
  hold()
  await settle()
  t.equal((await inner.list({})).length, 2, 'it is kept, and not taken back yet')
  sessions.makeRoom(1)
  await settle()
  t.equal(claimed, 1, 'and claimed')
  release()
  await settle()
  t.equal((await inner.list({})).length, 1, 'it is taken back before the claim is answered')
  answer()
  await settle()
  t.same(sessions.all, [])
  t.match(await queue.stats(), { queued: 1, running: 0 })
})

t.test('a job that somebody else has ended before its attempt began is counted no more', async (t) => {
  const { queue, sessions, adapter, clock, told } = await jobWorld(t)
  sessions.onCreate = async (session) => {
    await adapter.update(session.info.jobId!, { status: 'canceled', finishedAt: clock.now() })
    throw new GatewayError('SG_ERR_STORE_UNAVAILABLE')
  }
  const job = await queue.submit(jobRequest())
  await settle()
  t.match(await queue.stats(), { queued: 0, running: 0 })
  t.same(told(job), ['submitted', 'started'])
})

for (const [attempts, status, tells] of [
  [2, 'queued', 'retrying'],
  [1, 'failed', 'completed'],
] as const)
  t.test(`a cancel that is refused while the end of attempt 1 of ${attempts} is written: ${status}`, async (t) => {
    const clock = new VirtualClock()
    const { adapter, hold, release } = heldAdapter(clock)
    const { queue, sessions, told, job } = await jobWorld(t, { clock, adapter })
    const submitted = await queue.submit(jobRequest({ attempts, retryDelayMs: 1_000_000 }))
    await settle()
    hold()
    let gone = () => {}
    sessions.last.hangs = new Promise((resolve) => {
      gone = resolve
    })
    sessions.last.complete({ isError: true, errors: ['as the model says'], tokens: 7 })
    const refused = t.rejects(queue.cancel(submitted.id), { code: 'SG_ERR_STORE_UNAVAILABLE' })
    await settle()
    gone()
    await settle()
    await clock.advance(PATIENCE_MS)
    await refused
    release()
    await settle(10)
    t.match(await job(submitted), { status, error: 'as the model says', usage: { tokens: 7 } })
    t.same(told(submitted), ['submitted', 'started', tells])
    t.match(await queue.stats(), { dailyTokensUsed: 7, running: 0 })
    // and what is asked for now is done
    t.match(await queue.cancel(submitted.id), { status: status === 'queued' ? 'canceled' : status })
  })

t.test('a cancel that is refused and kept all the same is taken back, with what it charged', async (t) => {
  const clock = new VirtualClock()
  const { adapter, hold, release } = heldAdapter(clock)
  const { queue, sessions, told, job } = await jobWorld(t, { clock, adapter })
  const submitted = await queue.submit(jobRequest())
  await settle()
  sessions.last.say('so far', 7)
  await settle()
  hold()
  const refused = t.rejects(queue.cancel(submitted.id), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await settle()
  await clock.advance(PATIENCE_MS)
  await refused
  release()
  await settle(10)
  t.match(await job(submitted), { status: 'running' })
  t.match(await queue.stats(), { dailyTokensUsed: 0, running: 1 })
  sessions.last.complete({ tokens: 7 })
  await settle(10)
  t.match(await job(submitted), { status: 'succeeded', usage: { tokens: 7 } })
  t.match(await queue.stats(), { dailyTokensUsed: 7, running: 0 })
  t.equal(told(submitted).filter((what) => what === 'completed').length, 1)
})

t.test('what a run says while its cancel is written is not told once that it is over is written', async (t) => {
  const clock = new VirtualClock()
  const { adapter, hold, release } = heldAdapter(clock)
  const { queue, sessions } = await jobWorld(t, { clock, adapter })
  const { id } = await queue.submit(jobRequest())
  await settle()
  const seen: string[] = []
  queue.on('job_event', ({ event }) => void seen.push(event.type))
  hold()
  const canceled = queue.cancel(id)
  await settle()
  sessions.last.say('not stopped yet')
  await settle()
  release()
  t.match(await canceled, { status: 'canceled' })
  await settle()
  t.same(seen, ['job_completed'])
})
