import t from 'tap'
import { type ErrorCode, GatewayError } from '../../src/errors.js'
import { retryDelay, type StoredJob } from '../../src/jobs/job.js'
import { silentLogger } from '../../src/lib/logger.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { asSpecified, type FakeSession, jobRequest, jobWorld, PROFILE, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('a job is stored, run, completed and told in that order', async (t) => {
  const { queue, sessions, told, job, events } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest({ meta: { ticket: 7 } }))
  t.match(submitted, {
    status: 'queued',
    attempt: 1,
    maxAttempts: 1,
    profile: 'one',
    cwd: '/srv/work',
    prompt: 'do it',
  })
  await settle()
  t.match(await job(submitted), { status: 'running', sessionId: sessions.last.info.id })
  t.match(sessions.requests[0], { prompt: 'do it', profile: 'one' })
  t.match(await queue.stats(), { queued: 0, running: 1, parked: 0, maxConcurrency: 1, paused: false })
  sessions.last.say('working', 5)
  sessions.last.complete({ tokens: 12 })
  await settle()
  const done = await job(submitted)
  t.match(done, {
    status: 'succeeded',
    result: { subtype: 'success', isError: false, text: 'done' },
    usage: { tokens: 12, inputTokens: 12, cost: 0.5, numTurns: 1 },
    meta: { ticket: 7 },
    sdkSessionId: `sdk-${sessions.last.info.id}`,
  })
  t.notOk('notes' in done, 'what the queue notes for itself is not shown')
  t.same(told(submitted), ['submitted', 'started', 'completed'])
  t.match(
    events.find(({ type }) => type === 'job_progress'),
    {
      progress: { kind: 'assistant_text', preview: 'working' },
      job: { status: 'running', usage: { tokens: 5 } },
    },
  )
  t.equal(new Set(events.map(({ id }) => id)).size, events.length, 'every event has an id of its own')
  t.equal(sessions.last.info.status, 'closed', 'its session is over')
  t.same(sessions.removed, [], 'and can still be looked at')
  t.match(await queue.stats(), { queued: 0, running: 0, dailyTokensUsed: 12 })
})

t.test('as many run as there are slots, by priority, then in the order of submission', async (t) => {
  const { queue, sessions } = await jobWorld(t, { maxConcurrency: 2 })
  const [a, b, c, d, e] = [
    await queue.submit(jobRequest()),
    await queue.submit(jobRequest()),
    await queue.submit(jobRequest()),
    await queue.submit(jobRequest({ priority: 5 })),
    await queue.submit(jobRequest({ priority: -1 })),
  ]
  const started = () => sessions.all.map(({ info }) => info.jobId)
  await settle()
  t.same(started(), [a.id, b.id])
  t.match(await queue.stats(), { queued: 3, running: 2 })
  for (let turn = 0; turn < 5; turn++) {
    sessions.all.find((session) => !session.ended)?.complete()
    await settle()
  }
  t.same(started(), [a.id, b.id, d.id, c.id, e.id])
  t.match(await queue.stats(), { queued: 0, running: 0 })
})

t.test('a failed attempt is repeated with a doubled delay until attempts are used up', async (t) => {
  const { queue, sessions, clock, told, job } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest({ attempts: 3, retryDelayMs: 1000 }))
  await settle()
  sessions.last.complete({ isError: true, subtype: 'error_during_execution', errors: ['overloaded'], tokens: 3 })
  await settle()
  t.match(await job(submitted), { status: 'queued', attempt: 2, error: 'overloaded', nextRunAt: clock.now() + 1000 })
  t.match(await queue.stats(), { queued: 1, running: 0 })
  await clock.advance(999)
  t.equal(sessions.all.length, 1)
  await clock.advance(1)
  t.equal(sessions.all.length, 2)
  t.notOk((await job(submitted)).error)
  sessions.last.fail('the engine died')
  await settle()
  t.match(await job(submitted), { status: 'queued', attempt: 3, nextRunAt: clock.now() + 2000 })
  await clock.advance(2000)
  sessions.last.complete({ subtype: 'error_max_turns', isError: true, tokens: 4 })
  await settle()
  t.match(await job(submitted), {
    status: 'failed',
    attempt: 3,
    maxAttempts: 3,
    error: 'The run reached maxTurns.',
    result: { subtype: 'error_max_turns' },
    usage: { tokens: 7 },
  })
  t.same(told(submitted), ['submitted', 'started', 'retrying', 'started', 'retrying', 'started', 'completed'])
  t.equal((await queue.stats()).dailyTokensUsed, 7)
  await clock.advance(3_600_000)
  t.equal(sessions.all.length, 3, 'it never loops')
})

t.test('the default delay of a retry is five seconds; a turn that was interrupted is no success', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t)
  const submitted = await queue.submit(jobRequest({ attempts: 100 }))
  await settle()
  sessions.last.complete({ subtype: 'interrupted', isError: false })
  await settle()
  t.match(await job(submitted), { status: 'queued', nextRunAt: clock.now() + 5000, error: 'The run was interrupted.' })
})

t.test('a doubled delay stays a date', async (t) => {
  t.same(
    [1, 2, 5].map((attempt) => retryDelay(jobRequest(), attempt)),
    [5_000, 10_000, 80_000],
  )
  t.equal(retryDelay(jobRequest(), 100), 365 * 86_400_000)
  t.equal(retryDelay(jobRequest({ retryDelayMs: 0 }), 100), 0)
  t.equal(retryDelay(jobRequest({ retryDelayMs: 1e12 }), 3), 1e12, 'what was asked for is never cut')
})

t.test('a runner that cannot be built is a failed attempt like any other', async (t) => {
  const { queue, sessions, job, clock, events } = await jobWorld(t)
  sessions.onCreate = () => Promise.reject(new GatewayError('SG_ERR_ENGINE_START', { detail: 'No such agent.' }))
  const submitted = await queue.submit(jobRequest({ attempts: 2, retryDelayMs: 10 }))
  await settle()
  t.match(await job(submitted), { status: 'queued', attempt: 2, error: 'No such agent.', startedAt: Number })
  t.notOk('sessionId' in (await job(submitted)), 'there is none')
  sessions.onCreate = () => Promise.reject(new Error('a secret'))
  await clock.advance(10)
  await settle()
  t.match(await job(submitted), { status: 'failed', error: 'The session could not be started.' })
  t.notOk('sessionId' in (await job(submitted)))
  for (const { type, job } of events.slice(-2))
    t.equal('sessionId' in job, type === 'job_started', 'which it began with, and is over without')
})

t.test(
  'a job whose last runner could not be built has the sessions of its earlier attempts, and goes with them',
  async (t) => {
    const { queue, sessions, job, clock } = await jobWorld(t, { retention: { maxAgeMs: 1_000, sweepIntervalMs: 500 } })
    const submitted = await queue.submit(jobRequest({ attempts: 2, retryDelayMs: 10 }))
    await settle()
    const { id } = sessions.last.info
    sessions.last.complete({ isError: true, subtype: 'error_during_execution' })
    await settle()
    t.match(await job(submitted), { status: 'queued', sessionId: id })
    sessions.onCreate = () => Promise.reject(new GatewayError('SG_ERR_ENGINE_START'))
    await clock.advance(10)
    await settle()
    t.match(await job(submitted), { status: 'failed', sessionId: undefined })
    t.ok(await sessions.get(id))
    await clock.advance(2_000)
    await settle()
    t.equal(await queue.get(submitted.id), undefined)
    t.equal(await sessions.get(id), undefined)
  },
)

t.test('a job whose profile is gone fails and falls back to none', async (t) => {
  const { queue, sessions, job } = await jobWorld(t, {
    profiles: {
      recall: () => {
        throw new GatewayError('SG_ERR_PROFILE_CHANGED', { detail: 'Profile "one" no longer exists.' })
      },
      resolve: () => PROFILE,
    },
  })
  const submitted = await queue.submit(jobRequest({ attempts: 5 }))
  await settle()
  t.match(await job(submitted), { status: 'failed', attempt: 1, error: 'Profile "one" no longer exists.' })
  t.same(sessions.all, [])
})

t.test('a refusal that would come again is final, one of the moment is worth another attempt', async (t) => {
  const { queue, sessions, job, told } = await jobWorld(t, { maxConcurrency: 100 })
  const outcomeOf = async (refuse: (session: FakeSession) => void | Promise<void>) => {
    sessions.onCreate = refuse
    const submitted = await queue.submit(jobRequest({ attempts: 2 }))
    await settle()
    return { ...(await job(submitted)), told: told(submitted) }
  }
  const refused = (code: ErrorCode) => outcomeOf(() => Promise.reject(new GatewayError(code)))
  for (const code of ['SG_ERR_CWD_FORBIDDEN', 'SG_ERR_BYPASS_DISABLED', 'SG_ERR_UNSUPPORTED'] as const)
    t.match(await refused(code), { status: 'failed', attempt: 1, told: ['submitted', 'started', 'completed'] }, code)
  for (const code of ['SG_ERR_ENGINE_START', 'SG_ERR_TOO_MANY', 'SG_ERR_CWD_INVALID'] as const)
    t.match(await refused(code), { status: 'queued', attempt: 2 }, code)
  const failedWith = (code?: string) =>
    outcomeOf((session) => session.emit({ type: 'session_error', message: 'no', ...(code !== undefined && { code }) }))
  t.match(await failedWith('SG_ERR_API_KEY_REQUIRED'), { status: 'failed', attempt: 1, error: 'no' })
  t.match(await failedWith('SG_ERR_ENGINE_FAILED'), { status: 'queued', attempt: 2, error: 'no' })
  t.match(await failedWith('of the engine'), { status: 'queued' })
  t.match(await failedWith(), { status: 'queued' })
})

t.test('a slot is free again when the engine is gone, not before', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const first = await queue.submit(jobRequest())
  const second = await queue.submit(jobRequest())
  await settle()
  let gone = () => {}
  sessions.last.hangs = new Promise((resolve) => {
    gone = resolve
  })
  sessions.last.complete()
  await settle()
  t.match(await job(first), { status: 'succeeded' })
  t.match(await job(second), { status: 'queued' })
  gone()
  await settle()
  t.match(await job(second), { status: 'running' })
})

t.test('a full queue refuses, and so does one that drains', async (t) => {
  const { queue } = await jobWorld(t, { maxQueuedJobs: 2 })
  await queue.submit(jobRequest())
  await settle()
  const burst = await Promise.allSettled([1, 2, 3].map(() => queue.submit(jobRequest())))
  t.same(
    burst.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
  )
  t.match((burst[2] as PromiseRejectedResult).reason, {
    ...{ code: 'SG_ERR_TOO_MANY', retryAfterS: 5 },
    message: /queue\.maxQueuedJobs.*Try again once/,
  })
  queue.drain()
  await t.rejects(queue.submit(jobRequest()), { code: 'SG_ERR_SHUTTING_DOWN' })
})

t.test('a queue that drains lets end what runs, and begins nothing more', async (t) => {
  const { queue, sessions, clock, job } = await jobWorld(t, { maxConcurrency: 1 })
  const running = await queue.submit(jobRequest())
  const queued = await queue.submit(jobRequest())
  const delayed = await queue.submit(jobRequest({ runAt: clock.now() + 1_000 }))
  await settle()
  queue.drain()
  sessions.last.complete()
  await settle()
  await clock.advance(60_000)
  t.match(await job(running), { status: 'succeeded' })
  for (const waits of [queued, delayed]) t.match(await job(waits), { status: 'queued' })
  t.equal(sessions.all.length, 1)
})

t.test('what is wrong with a request is said when it is submitted', async (t) => {
  const { queue } = await jobWorld(t)
  const paths = async (request: object) => {
    const refusal = (await queue.submit(request as never).catch((error) => error)) as GatewayError
    return refusal.errors?.map(({ path }) => path)
  }
  t.same(await paths({ session: { cwd: '/', prompt: '' } }), ['session.prompt'])
  t.same(await paths({ session: { cwd: '/', prompt: 'x', resume: 'y' } }), ['session.resume'])
  t.same(await paths({ ...jobRequest(), attempts: 101 }), ['attempts'])
  t.same(await paths({ ...jobRequest(), retryDelayMs: -1 }), ['retryDelayMs'])
  t.same(await paths({ ...jobRequest(), maxTokens: 0 }), ['maxTokens'])
  t.same(await paths({ ...jobRequest(), webhook: { url: 'http://169.254.169.254/latest' } }), ['webhook.url'])
  t.same(await paths({ ...jobRequest(), webhook: { url: 'ftp://x/' } }), ['webhook.url'])
  t.same(await paths({ ...jobRequest(), webhook: { url: 'http://x/', headers: { Host: 'y', 'X-A': 'b\n' } } }), [
    'webhook.headers.Host',
    'webhook.headers.X-A',
  ])
})

t.test('pages of jobs, newest first, by status and by what the caller may see', async (t) => {
  const { queue, sessions } = await jobWorld(t)
  const jobs = []
  for (let index = 0; index < 6; index++) jobs.push(await queue.submit(jobRequest({}, index % 2 ? 'odd' : 'even')))
  await settle()
  const newestFirst = jobs.map(({ id }) => id).reverse()
  const ids = async (...args: Parameters<typeof queue.page>) => (await queue.page(...args)).items.map(({ id }) => id)
  t.same(await ids({}), newestFirst)
  const first = await queue.page({ limit: 4 })
  t.same(await ids({ limit: 4, cursor: first.next! }), newestFirst.slice(4))
  t.equal((await queue.page({ limit: 2, cursor: first.next! })).next, undefined)
  t.same(await ids({ status: 'running' }), [sessions.last.info.jobId])
  const odd = { allowedProfiles: new Set(['odd']), canManageProfiles: false } as never
  t.same(await ids({}, odd), [jobs[5]?.id, jobs[3]?.id, jobs[1]?.id])
  t.same(await ids({ profile: 'even' }, odd), [])
  t.match(await queue.stats(odd), { queued: 3, running: 0 })
  await t.rejects(queue.visibleJob(jobs[0]!.id, odd), { code: 'SG_ERR_JOB_NOT_FOUND' })
  await t.rejects(queue.page({ cursor: 'x' }), { code: 'SG_ERR_VALIDATION' })
})

for (const whose of ['ours', 'one of nothing but what the specification asks'])
  t.test(
    `retention removes old terminal jobs with their sessions, and nothing that is not over: ${whose}`,
    async (t) => {
      const time = new VirtualClock()
      const ours = createMemoryQueueAdapter({ now: () => time.now() })
      const adapter = whose === 'ours' ? ours : asSpecified(ours)
      const retention = { maxAgeMs: 1000, sweepIntervalMs: 100 }
      const { queue, sessions, clock, job } = await jobWorld(t, { clock: time, adapter, retention })
      const old = await queue.submit(jobRequest({ attempts: 2, retryDelayMs: 0 }))
      await settle()
      sessions.last.complete({ isError: true })
      await settle(8)
      sessions.last.complete()
      await settle()
      t.match(await job(old), { status: 'succeeded' })
      const parked = await queue.submit(jobRequest())
      await settle()
      sessions.last.park()
      const running = await queue.submit(jobRequest())
      await clock.advance(900)
      t.ok(await queue.get(old.id))
      await clock.advance(1000)
      t.equal(await queue.get(old.id), undefined)
      t.same(
        sessions.removed,
        sessions.all.slice(0, 2).map(({ info }) => info.id),
        'the sessions of both attempts',
      )
      t.match(await job(parked), { status: 'parked' })
      t.match(await job(running), { status: 'running' })
    },
  )

t.test(
  'an adapter may take its time before it tells of work, and is heard no more once the queue is closed',
  async (t) => {
    let heard = 0
    const adapter = Object.assign(createMemoryQueueAdapter({ now: () => 0 }), {
      onWork: async () => {
        heard++
        return () => void heard--
      },
    })
    const { queue } = await jobWorld(t, { adapter })
    t.equal(heard, 1)
    await queue.close()
    t.equal(heard, 0)
  },
)

t.test('that jobs cannot be claimed is told once, however long it lasts', async (t) => {
  const full = () => Promise.reject(new Error('no space left'))
  const adapter = Object.assign(createMemoryQueueAdapter({ now: () => 0 }), { claimNext: full, claim: full })
  const told: string[] = []
  const error: typeof silentLogger.error = (_fields: unknown, message?: unknown) => void told.push(String(message))
  const { queue, clock } = await jobWorld(t, { adapter, logger: { ...silentLogger, error } })
  await queue.submit(jobRequest())
  for (let tries = 0; tries < 5; tries++) {
    await settle()
    await clock.advance(5_000)
  }
  t.same(told, ['jobs could not be claimed; it is tried again'])
})

t.test('jobs that cannot be claimed are tried for once in a second, however many ask for it meanwhile', async (t) => {
  let tries = 0
  const full = () => {
    tries++
    return Promise.reject(new Error('no space left'))
  }
  const adapter = Object.assign(createMemoryQueueAdapter({ now: () => 0 }), { claimNext: full, claim: full })
  const { queue, clock } = await jobWorld(t, { adapter })
  for (let submitted = 0; submitted < 20; submitted++) {
    await queue.submit(jobRequest())
    await settle()
  }
  await clock.advance(1_000)
  await settle()
  tries = 0
  await clock.advance(1_000)
  await settle()
  t.equal(tries, 1)
})

t.test('a sweep of old jobs that is under way when the queue is closed asks for no more of them', async (t) => {
  let asked = 0
  const adapter = Object.assign(createMemoryQueueAdapter({ now: () => 0 }), {
    async ended() {
      asked++
      return Array.from({ length: 500 }, (_, index) => ({ id: `${asked} ${index}`, finishedAt: 0 }) as StoredJob)
    },
    remove: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  })
  const { queue, clock } = await jobWorld(t, { adapter, retention: { maxAgeMs: 1, sweepIntervalMs: 1_000 } })
  await clock.advance(1_000)
  await queue.close()
  const before = asked
  t.ok(before > 0)
  await settle(20)
  t.equal(asked, before)
})

t.test(
  'old jobs that cannot be removed are not tried again without a pause, however often it is looked for them',
  async (t) => {
    let asked = 0
    let isFull = true
    const adapter = Object.assign(createMemoryQueueAdapter({ now: () => 0 }), {
      async ended() {
        asked++
        if (isFull) throw new Error('disk full')
        return []
      },
    })
    const { clock } = await jobWorld(t, { adapter, retention: { maxAgeMs: 0, sweepIntervalMs: 1 } })
    await clock.advance(10_000)
    t.ok(asked > 10 && asked < 30, `${asked} times in ten seconds`)
    isFull = false
    await clock.advance(1_000)
    asked = 0
    await clock.advance(100)
    t.equal(asked, 100, 'and as often as it is asked for again when they can')
  },
)
