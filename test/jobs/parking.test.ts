import t, { type Test } from 'tap'
import type { JobInfo } from '../../schemas/jobs.js'
import type { JobPatch, JobRecord } from '../../src/jobs/adapter.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { failingDisk } from '../fixtures/failing-disk.js'
import { FakeSessions, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { native, ok } from '../fixtures/parked.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('a parked job frees its slot, stops its clock and goes on when its session does', async (t) => {
  const { queue, sessions, clock, job, told, events } = await jobWorld(t, { maxJobDurationMs: 10_000 })
  const parked = await queue.submit(jobRequest())
  const next = await queue.submit(jobRequest())
  await settle()
  const [first] = sessions.all
  first?.say('before', 10)
  await clock.advance(6_000)
  first?.park('exec-9')
  await settle()
  t.match(await job(parked), {
    status: 'parked',
    parkedAt: clock.now(),
    parkedExecutionId: 'exec-9',
    usage: { tokens: 10 },
  })
  t.match(await job(next), { status: 'running' })
  t.match(await queue.stats(), { running: 1, parked: 1, queued: 0 })
  await clock.advance(5_000)
  first?.wake()
  await settle()
  const resumed = await job(parked)
  t.match(resumed, { status: 'running' })
  t.notOk('parkedAt' in resumed || 'parkedExecutionId' in resumed)
  t.match(await queue.stats(), { running: 2, parked: 0 }, 'a resume may exceed maxConcurrency, and counts')
  sessions.all[1]?.complete()
  await settle()
  await clock.advance(3_999)
  t.same(first?.interrupts, [], 'only the time spent running counts')
  first?.say('after', 5)
  first?.complete({ tokens: 15 })
  await settle()
  t.match(await job(parked), { status: 'succeeded', usage: { tokens: 15, numTurns: 1, cost: 0.5 } })
  t.same(told(parked), ['submitted', 'started', 'parked', 'resumed', 'completed'])
  const ids = events.filter(({ type }) => type === 'job_parked' || type === 'job_resumed')
  t.same(
    ids.map(({ executionId }) => executionId),
    ['exec-9', 'exec-9'],
  )
})

t.test('what a resumed run says is told of a job that runs, with what was used by then', async (t) => {
  const { queue, sessions, told, events } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest())
  await settle()
  sessions.last.say('before', 100)
  sessions.last.park('exec-9')
  await settle()
  sessions.last.wake()
  sessions.last.say('after', 20)
  await settle()
  t.same(told(submitted), ['submitted', 'started', 'parked', 'resumed'])
  t.same(
    events
      .slice(2)
      .map(({ type, job }) => [type, job.status, job.usage.tokens, 'parkedAt' in job, 'parkedExecutionId' in job]),
    [
      ['job_progress', 'running', 100, false, false],
      ['job_parked', 'parked', 100, true, true],
      ['job_resumed', 'running', 100, false, false],
      ['job_progress', 'running', 120, false, false],
    ],
  )
})

t.test('a leg that tells only its own usage adds to the earlier one', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest())
  await settle()
  sessions.last.say('before', 100)
  sessions.last.park()
  sessions.last.wake()
  sessions.last.say('after', 20)
  sessions.last.complete({ tokens: 20 })
  await settle()
  t.match(await job(submitted), { status: 'succeeded', usage: { tokens: 120 } })
})

t.test('the time that a run is parked is limited over all its parks, and fails the job', async (t) => {
  const { queue, sessions, clock, job, told } = await jobWorld(t, { maxParkedDurationMs: 10_000 })
  const submitted = await queue.submit(jobRequest({ attempts: 5 }))
  await settle()
  sessions.last.park('a')
  await settle()
  await clock.advance(6_000)
  sessions.last.wake()
  await settle()
  await clock.advance(60_000)
  sessions.last.park('b')
  await settle()
  await clock.advance(3_999)
  t.match(await job(submitted), { status: 'parked', parkedExecutionId: 'b' })
  await clock.advance(1)
  await settle()
  const failed = await job(submitted)
  t.match(failed, { status: 'failed', error: 'The run was parked for more than 10000 ms.', attempt: 1 })
  t.notOk('parkedAt' in failed || 'parkedExecutionId' in failed)
  t.same(sessions.removed, [sessions.last.info.id], 'nothing can wake it')
  t.same(told(submitted).slice(-2), ['parked', 'completed'])
})

t.test('canceling a parked job discards its session', async (t) => {
  const { queue, sessions, told } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest())
  await settle()
  sessions.last.say('x', 9)
  sessions.last.park()
  await settle()
  t.match(await queue.cancel(submitted.id), { status: 'canceled', usage: { tokens: 9 } })
  t.same(sessions.removed, [sessions.last.info.id])
  t.match(await queue.stats(), { parked: 0, running: 0, dailyTokensUsed: 9 })
  sessions.last.wake()
  await settle()
  t.same(told(submitted), ['submitted', 'started', 'parked', 'completed'])
})

t.test('a parked job that ends frees nothing that it did not take', async (t) => {
  const { queue, sessions } = await jobWorld(t)
  for (let index = 0; index < 3; index++) {
    const { id } = await queue.submit(jobRequest())
    await settle()
    sessions.last.park()
    await settle()
    await queue.cancel(id)
  }
  for (let index = 0; index < 3; index++) await queue.submit(jobRequest())
  await settle()
  t.match(await queue.stats(), { running: 1, queued: 2 })
})

t.test('deleting the session of a parked job cancels the job', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const closed = await queue.submit(jobRequest({ attempts: 3 }))
  await settle()
  sessions.last.park()
  await settle()
  sessions.last.end('client')
  await settle()
  t.match(await job(closed), { status: 'canceled' })
  const removed = await queue.submit(jobRequest({ attempts: 3 }))
  await settle()
  sessions.last.park()
  await settle()
  sessions.remove(sessions.last.info.id)
  await settle()
  t.match(await job(removed), { status: 'canceled' }, 'also when nothing but the removal is told')
  t.match(await queue.stats(), { parked: 0, running: 0 })
})

/** Submits jobs, brings them to where `prepare` leaves them, and starts a second queue on the same adapter. */
async function restart(
  t: Test,
  prepare: (world: Awaited<ReturnType<typeof jobWorld>>) => Promise<JobInfo>,
  options: { keepSessions?: boolean; downMs?: number; maxParkedDurationMs?: number } = {},
) {
  const { keepSessions = true, downMs = 0, ...queueOptions } = options
  // the first process is dead: its clock stands still
  let clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  const before = await jobWorld(t, { clock, adapter, ...queueOptions })
  const job = await prepare(before)
  before.queue.drain()
  clock = new VirtualClock(clock.now() + downMs)
  const sessions = new FakeSessions(clock)
  // a turn that was in flight is over
  if (keepSessions)
    for (const { info } of before.sessions.all)
      sessions.adopt(info.status === 'parked' ? info : { ...info, status: 'idle' })
  const after = await jobWorld(t, { clock, adapter, sessions, ...queueOptions })
  await settle()
  return { ...after, submitted: job }
}

t.test('after a restart queued jobs start and retry timers are armed again', async (t) => {
  const { job, submitted, clock, sessions, queue } = await restart(t, async ({ queue, clock }) => {
    const waiting = await queue.submit(jobRequest({ runAt: clock.now() + 5000 }))
    queue.drain()
    return waiting
  })
  t.match(await queue.stats(), { queued: 1 })
  t.match(await job(submitted), { status: 'queued' })
  await clock.advance(5000)
  await settle()
  t.match(await job(submitted), { status: 'running' })
  t.equal(sessions.all.length, 1)
})

t.test('a run that a crash interrupted is a failed attempt', async (t) => {
  const running = async ({ queue }: Awaited<ReturnType<typeof jobWorld>>, attempts: number) => {
    const submitted = await queue.submit(jobRequest({ attempts, retryDelayMs: 1000 }))
    await settle()
    return submitted
  }
  const again = await restart(t, (world) => running(world, 2))
  t.match(await again.job(again.submitted), {
    status: 'queued',
    attempt: 2,
    error: 'The gateway stopped during the run.',
  })
  await again.clock.advance(1000)
  await settle()
  t.match(await again.job(again.submitted), { status: 'running', attempt: 2 })
  const last = await restart(t, (world) => running(world, 1))
  t.match(await last.job(last.submitted), { status: 'failed', attempt: 1 })
  t.same(last.told(last.submitted), ['completed'])
})

const parkedAfter = async ({ queue, sessions, clock }: Awaited<ReturnType<typeof jobWorld>>) => {
  const submitted = await queue.submit(jobRequest({ maxDurationMs: 10_000, maxTokens: 100, attempts: 3 }))
  await settle()
  sessions.last.say('before', 60)
  await clock.advance(4_000)
  sessions.last.park('exec-7')
  await settle()
  return submitted
}

t.test('a parked job stays parked over a restart and goes on with its accounting', async (t) => {
  const { job, submitted, sessions, clock, queue, told } = await restart(t, parkedAfter, { downMs: 86_400_000 })
  t.match(await job(submitted), { status: 'parked', parkedExecutionId: 'exec-7', usage: { tokens: 60 } })
  t.match(await queue.stats(), { parked: 1, running: 0 })
  sessions.last.wake()
  await settle()
  await clock.advance(5_999)
  t.same(sessions.last.interrupts, [], 'four of its ten seconds are used')
  sessions.last.say('after', 40)
  await settle()
  t.same(sessions.last.interrupts, [])
  sessions.last.complete({ tokens: 100 })
  await settle()
  t.match(await job(submitted), { status: 'succeeded', usage: { tokens: 100 } })
  t.same(told(submitted), ['resumed', 'completed'])
  t.equal((await queue.stats()).dailyTokensUsed, 100)
})

t.test('what a run has left of its time is not lengthened by a restart', async (t) => {
  const { sessions, clock } = await restart(t, parkedAfter)
  sessions.last.wake()
  await settle()
  await clock.advance(5_999)
  t.same(sessions.last.interrupts, [], 'four of its ten seconds are used')
  await clock.advance(1)
  t.equal(sessions.last.interrupts.length, 1)
})

t.test('nor is what it has left of the time that it may be parked', async (t) => {
  const { job, submitted, clock } = await restart(t, parkedAfter, { downMs: 400, maxParkedDurationMs: 1000 })
  await clock.advance(599)
  t.match(await job(submitted), { status: 'parked' })
  await clock.advance(1)
  await settle()
  t.match(await job(submitted), { status: 'failed' })
})

t.test('events from before the restart are not counted again', async (t) => {
  const { job, submitted, sessions } = await restart(t, parkedAfter)
  const { info } = sessions.last
  sessions.last.info = { ...info, lastSeq: 1 }
  sessions.last.complete({ tokens: 999 })
  await settle()
  t.match(await job(submitted), { status: 'parked', usage: { tokens: 60 } })
})

t.test('records of an adapter that somebody else filled are run as they are', async (t) => {
  const clock = new VirtualClock()
  const memory = createMemoryQueueAdapter({ now: () => clock.now() })
  for (const status of ['queued', 'running'] as const) {
    const usage = { tokens: 0, ...NO_USAGE, cost: 0, numTurns: 0 }
    const info = {
      id: status,
      status,
      profile: 'one',
      cwd: '/',
      prompt: 'x',
      createdAt: 1,
      attempt: 1,
      maxAttempts: 2,
      usage,
      // a claim alone is no attempt yet
      ...(status === 'running' && { sessionId: 'gone' }),
    }
    const record: JobRecord = { info, request: jobRequest({ retryDelayMs: 0 }) }
    await memory.add(record)
  }
  // knows no filter, no settle and no expected status
  const { settle: _settle, ...rest } = memory
  const adapter = {
    ...rest,
    list: () => memory.list(),
    update: (id: string, patch: JobPatch) => memory.update(id, patch),
  }
  const { queue, sessions } = await jobWorld(t, { clock, adapter })
  for (let round = 0; round < 4; round++) {
    await settle()
    await clock.advance(0)
    if (sessions.all.length > 0) sessions.last.complete()
  }
  await settle()
  t.match(await queue.get('queued'), { status: 'succeeded', attempt: 1 })
  t.match(await queue.get('running'), { status: 'succeeded', attempt: 2 })
})

t.test('a parked job whose session is nowhere fails with that reason', async (t) => {
  const { job, submitted, told, queue } = await restart(t, parkedAfter, { keepSessions: false })
  t.match(await job(submitted), { status: 'failed', attempt: 1, error: 'The session of the parked job is gone.' })
  t.same(told(submitted), ['completed'])
  t.match(await queue.stats(), { parked: 0, running: 0 })
})

t.test('a limit on parked time that lapsed while nobody was there leaves a grace', async (t) => {
  const { job, submitted, clock } = await restart(t, parkedAfter, { downMs: 1e6, maxParkedDurationMs: 1000 })
  t.match(await job(submitted), { status: 'parked' })
  await clock.advance(59_999)
  t.match(await job(submitted), { status: 'parked' })
  await clock.advance(1)
  await settle()
  t.match(await job(submitted), { status: 'failed' })
})

t.test('a parked job that is over while the storage fails leaves no session that a result could wake', async (t) => {
  const { disk, storage } = failingDisk()
  const queue = { maxParkedDurationMs: 60_000 }
  const { gateway, registry, engine, clock } = await buildGateway(t, { storage, script: native, queue })
  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'x' } })
  const status = async () => (await gateway.queue!.get(id))?.status
  await until(() => engine.runners[0]?.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await status()) === 'parked')
  disk.fails = 'STORAGE_IO'
  await clock.advance(60_000)
  disk.fails = undefined
  await clock.advance(30_000)
  await until(async () => (await status()) === 'failed')
  await until(async () => (await registry.list()).length === 0, 'the end of its session')
  await t.rejects(gateway.executions.submit('e1', ok), { code: 'SG_ERR_EXECUTION_NOT_FOUND' })
  t.equal(engine.runners.length, 1)
})

t.test("a gateway that is closed ends no parked job any more, which is the next one's", async (t) => {
  const storage = createMemoryStorage()
  const first = await buildGateway(t, { storage, script: native, queue: { maxParkedDurationMs: 60_000 } })
  const { id } = await first.gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'x' } })
  await until(() => first.engine.runners[0]?.sent.length === 1)
  await first.engine.last.defer('e1')
  await until(async () => (await first.gateway.queue!.get(id))?.status === 'parked')
  await first.gateway.close()
  const { clock } = first
  const { gateway, engine } = await buildGateway(t, { storage, clock, script: native, queue: {} })
  await clock.advance(60_000)
  t.match(await gateway.queue!.get(id), { status: 'parked' })
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
  await until(() => engine.runners.length === 1, 'its engine')
})
