import t from 'tap'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { asSpecified, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR_MS = 3_600_000

t.test('a run over its token cap is interrupted and fails; the stricter cap wins', async (t) => {
  for (const [perJob, perQueue] of [
    [100, undefined],
    [undefined, 100],
    [100, 1000],
    [1000, 100],
  ] as const) {
    const { queue, sessions, job } = await jobWorld(t, perQueue ? { sessionTokenLimit: perQueue } : {})
    const submitted = await queue.submit(jobRequest(perJob ? { maxTokens: perJob } : {}))
    await settle()
    sessions.last.say('a', 60)
    sessions.last.say('b', 40)
    await settle()
    t.match(await job(submitted), { status: 'running', usage: { tokens: 100 } }, 'the cap itself may be used')
    sessions.last.say('c', 1)
    await settle()
    t.equal(sessions.last.interrupts.length, 1)
    t.match(await job(submitted), {
      status: 'failed',
      error: 'The run used more than 100 tokens.',
      usage: { tokens: 101, outputTokens: 101 },
      result: { subtype: 'interrupted' },
    })
  }
})

t.test('all four kinds of tokens count, also when the engine tells them only at the end of the turn', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest({ maxTokens: 9 }))
  await settle()
  const usage = { inputTokens: 1, outputTokens: 2, cacheCreationTokens: 3, cacheReadTokens: 4 }
  sessions.last.complete({ usage })
  await settle()
  t.match(await job(submitted), { status: 'failed', usage: { ...usage, tokens: 10 } })
})

t.test('a run that takes too long is interrupted, ended by force after the grace, and repeated', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t, { maxJobDurationMs: HOUR_MS, killGraceMs: 2000 })
  const submitted = await queue.submit(jobRequest({ maxDurationMs: 10_000, attempts: 2, retryDelayMs: 0 }))
  await settle()
  sessions.onInterrupt = () => {}
  await clock.advance(9_999)
  t.equal(sessions.last.interrupts.length, 0)
  await clock.advance(1)
  t.equal(sessions.last.interrupts.length, 1)
  await clock.advance(1_999)
  t.notOk(sessions.last.ended)
  sessions.last.say('one more', 7)
  await settle()
  await clock.advance(1)
  await settle()
  t.ok(sessions.all[0]?.ended)
  t.match(await job(submitted), { attempt: 2, usage: { tokens: 7 } })
  t.equal(sessions.all.length, 2, 'the next attempt has its own time')
  await clock.advance(9_999)
  sessions.last.complete()
  await settle()
  t.match(await job(submitted), { status: 'succeeded' })
})

t.test('a turn that finishes just after it was given up is no success', async (t) => {
  const { queue, sessions, clock, told, job } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest({ maxDurationMs: 1000 }))
  await settle()
  sessions.onInterrupt = (session) => session.complete({ tokens: 5 })
  await clock.advance(1000)
  await settle()
  t.match(await job(submitted), { status: 'failed', error: 'The run took longer than 1000 ms.', usage: { tokens: 5 } })
  t.same(told(submitted), ['submitted', 'started', 'completed'])
  t.equal((await queue.stats()).dailyTokensUsed, 5, 'counted once')
})

t.test('the time of a run counts while its runner is being built', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t, { killGraceMs: 0 })
  sessions.onCreate = () => new Promise(() => {})
  sessions.onInterrupt = () => {}
  const submitted = await queue.submit(jobRequest({ maxDurationMs: 1000 }))
  await settle()
  await clock.advance(1000)
  await settle()
  t.match(await job(submitted), { status: 'failed' })
  t.ok(sessions.last.ended)
})

t.test('a limit beyond 24.8 days does not fire at once', async (t) => {
  const { queue, sessions, job } = await jobWorld(t, { maxJobDurationMs: 3e9 })
  const submitted = await queue.submit(jobRequest({ maxDurationMs: 9_007_199_254_740 }))
  await settle()
  t.match(await job(submitted), { status: 'running' })
  t.same(sessions.last.interrupts, [])
})

for (const whose of ['ours', 'one of nothing but what the specification asks'])
  t.test(`an exhausted day holds the queue, and midnight lets it go on by itself: ${whose}`, async (t) => {
    const clock = new VirtualClock(Date.UTC(2026, 5, 1, 22))
    const ours = createMemoryQueueAdapter({ now: () => clock.now() })
    const adapter = whose === 'ours' ? ours : asSpecified(ours)
    const { queue, sessions, job } = await jobWorld(t, { clock, adapter, dailyTokenLimit: 100, maxConcurrency: 2 })
    const pauses: boolean[] = []
    queue.on('budget_changed', ({ paused }) => pauses.push(paused))
    await queue.submit(jobRequest())
    const long = await queue.submit(jobRequest())
    const held = await queue.submit(jobRequest())
    await settle()
    sessions.all[0]?.complete({ tokens: 100 })
    await settle()
    const midnight = Date.UTC(2026, 5, 2)
    t.match(await queue.stats(), {
      paused: true,
      dailyTokensUsed: 100,
      dailyTokenLimit: 100,
      resumesAt: midnight,
      queued: 1,
    })
    t.match(await job(held), { status: 'queued' })
    t.match(await job(long), { status: 'running' }, 'what runs goes on')
    await clock.advance(2 * HOUR_MS - 1)
    t.match(await job(held), { status: 'queued' })
    await clock.advance(1)
    await settle()
    t.match(await job(held), { status: 'running' })
    t.match(await queue.stats(), { paused: false, dailyTokensUsed: 0 })
    t.notOk('resumesAt' in (await queue.stats()))
    t.same(pauses, [true, false])
    sessions.all[1]?.complete({ tokens: 30 })
    await settle()
    t.equal((await queue.stats()).dailyTokensUsed, 30, 'an attempt is charged to the day of its end')
  })

t.test('a clock that is set takes no time from a run, nor gives it any', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t, { maxJobDurationMs: 10_000, maxParkedDurationMs: 10_000 })
  const submitted = await queue.submit(jobRequest())
  await settle()
  for (const byMs of [HOUR_MS, -2 * HOUR_MS]) {
    await clock.advance(2_000)
    clock.set(byMs)
    sessions.last.park()
    await settle()
    await clock.advance(2_000)
    clock.set(byMs)
    sessions.last.wake()
    await settle()
  }
  sessions.last.park()
  await clock.advance(5_999)
  t.match(await job(submitted), { status: 'parked' }, 'four seconds parked, and these')
  sessions.last.wake()
  await clock.advance(5_999)
  t.same(sessions.last.interrupts, [], 'and four running')
  await clock.advance(1)
  t.equal(sessions.last.interrupts.length, 1)
})

t.test('a held queue notices a clock that was set', async (t) => {
  const clock = new VirtualClock(Date.UTC(2026, 5, 1, 12))
  const { queue, sessions, job } = await jobWorld(t, { clock, dailyTokenLimit: 10 })
  await queue.submit(jobRequest())
  const held = await queue.submit(jobRequest())
  const later = await queue.submit(jobRequest({ runAt: clock.now() + 48 * HOUR_MS, priority: 1 }))
  await settle()
  sessions.last.complete({ tokens: 10 })
  await settle()
  t.match(await queue.stats(), { paused: true })
  clock.set(13 * HOUR_MS)
  await clock.advance(60_000)
  await settle()
  t.match(await job(held), { status: 'running' }, 'forward over midnight')
  clock.set(-13 * HOUR_MS)
  t.match(await queue.stats(), { dailyTokensUsed: 0 }, 'back again: the counter of that day is read when it is needed')
  sessions.last.complete()
  await settle()
  t.match(await queue.stats(), { paused: true, dailyTokensUsed: 10 })
  clock.set(48 * HOUR_MS)
  await clock.advance(60_000)
  await settle()
  t.match(await job(later), { status: 'running' })
})

t.test('tokens are charged once per attempt, also over an adapter without settle and one that fails', async (t) => {
  const clock = new VirtualClock()
  const { settle: _settle, ...plain } = createMemoryQueueAdapter({ now: () => clock.now() })
  let failures = 2
  const adapter: QueueAdapter = {
    ...plain,
    async update(...args) {
      if (args[1].status === 'succeeded' && failures-- > 0) throw new Error('disk full')
      return plain.update(...args)
    },
  }
  const { queue, sessions, job, told } = await jobWorld(t, { adapter, clock })
  const submitted = await queue.submit(jobRequest())
  await settle()
  sessions.last.complete({ tokens: 10 })
  await settle()
  t.match(await job(submitted), { status: 'running' }, 'nothing is told that is not stored')
  t.same(told(submitted), ['submitted', 'started'])
  await clock.advance(500)
  await clock.advance(1000)
  await settle()
  t.match(await job(submitted), { status: 'succeeded' })
  t.same(told(submitted), ['submitted', 'started', 'completed'])
  t.equal((await queue.stats()).dailyTokensUsed, 10)
})

for (const method of ['claim', 'claimNext'] as const)
  t.test(`claims are tried again when the adapter fails, by ${method}`, async (t) => {
    const clock = new VirtualClock()
    const { claim, ...memory } = createMemoryQueueAdapter({ now: () => clock.now() })
    let fails = true
    const failing =
      <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
      (...args: A): Promise<R> =>
        fails ? Promise.reject(new Error('gone')) : call(...args)
    const adapter =
      method === 'claim' ? { ...memory, claim: failing(claim!) } : { ...memory, claimNext: failing(memory.claimNext) }
    const { queue, job } = await jobWorld(t, { adapter, clock })
    const submitted = await queue.submit(jobRequest())
    await settle()
    t.match(await job(submitted), { status: 'queued' })
    fails = false
    await clock.advance(1000)
    await settle()
    t.match(await job(submitted), { status: 'running' })
  })
