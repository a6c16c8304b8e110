import t, { type Test } from 'tap'
import type { JobInfo } from '../../schemas/jobs.js'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { GatewayError } from '../../src/errors.js'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { newJob, type StoredJob } from '../../src/jobs/job.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { FakeSessions, type JobWorldOptions, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

/** What an earlier process left in its stores. */
class Leftovers {
  readonly clock = new VirtualClock()
  readonly adapter = createMemoryQueueAdapter({ now: () => this.clock.now() })
  readonly sessions = new FakeSessions(this.clock)

  async job(id: string, fields: Partial<StoredJob> = {}, request = jobRequest()): Promise<StoredJob> {
    const given = { id, now: this.clock.now() - 60_000, profile: 'one', generation: 'g1', cwd: '/srv/work' }
    const info = { ...newJob(request, given), ...fields }
    await this.adapter.add({ request, info })
    return info
  }

  session(jobId: string, status: SessionStatus, fields: Partial<SessionInfo> = {}) {
    return this.sessions.adopt({
      ...{ id: `session-of-${jobId}`, jobId, status, profile: 'one', engine: 'provider', title: 't', cwd: '/' },
      ...{
        createdAt: 1,
        lastActivityAt: 1,
        lastSeq: 9,
        pendingPermissions: 0,
        attachedClients: 0,
        numTurns: 0,
        cost: 0,
      },
      usage: NO_USAGE,
      ...(status === 'parked' && { parked: { since: 1, executions: [{ executionId: 'exec-1', toolName: 'tool' }] } }),
      ...fields,
    })
  }

  async start(t: Test, options: JobWorldOptions = {}) {
    const world = await jobWorld(t, {
      ...{ clock: this.clock, adapter: this.adapter, sessions: this.sessions, maxConcurrency: 9 },
      ...options,
    })
    await settle()
    return world
  }
}

const running = (id: string, more: Partial<StoredJob> = {}) =>
  ({ status: 'running', startedAt: 1, sessionId: `session-of-${id}`, ...more }) as const
const parked = (id: string, more: Partial<StoredJob> = {}) =>
  ({ ...running(id), status: 'parked', parkedAt: 1, parkedExecutionId: 'exec-1', ...more }) as const
const only = (id: string) => ({ id }) as JobInfo

t.test('every job of an earlier process is taken up as its state says, and ends at most once', async (t) => {
  const left = new Leftovers()
  await left.job('waits')
  await left.job('waits-long', { nextRunAt: left.clock.now() + 5_000 })
  await left.job('fell-due', { nextRunAt: left.clock.now() - 5_000, attempt: 2, maxAttempts: 2, error: 'before' })
  await left.job('ran', running('ran', { maxAttempts: 2 }), jobRequest({ attempts: 2, retryDelayMs: 1_000 }))
  await left.job('ran-last', running('ran-last', { attempt: 3, maxAttempts: 3 }))
  await left.job('claimed', { status: 'running' })
  await left.job('parked', parked('parked'))
  await left.job('parked-lost', parked('parked-lost', { maxAttempts: 5 }))
  await left.job('over', { status: 'succeeded', finishedAt: 1 })
  left.session('parked', 'parked')
  const { told, job, queue, clock, sessions } = await left.start(t)
  const stories = () =>
    ['waits', 'waits-long', 'fell-due', 'ran', 'ran-last', 'claimed', 'parked', 'parked-lost', 'over'].map((id) =>
      told(only(id)),
    )
  t.same(stories(), [['started'], [], ['started'], ['retrying'], ['completed'], ['started'], [], ['completed'], []])
  t.match(await job(only('ran')), { status: 'queued', attempt: 2, error: 'The gateway stopped during the run.' })
  t.match(await job(only('ran-last')), { status: 'failed', attempt: 3 })
  t.match(await job(only('claimed')), { status: 'running', attempt: 1 }, 'what never began is no attempt')
  t.match(await job(only('parked-lost')), {
    status: 'failed',
    error: 'The session of the parked job is gone.',
    attempt: 1,
  })
  t.match(await queue.stats(), { queued: 2, running: 3, parked: 1 })
  await clock.advance(5_000)
  await settle()
  for (const session of sessions.all) if (!session.ended) session.complete()
  await settle()
  t.match(await queue.stats(), { queued: 0, running: 0, parked: 0 })
  t.same(
    stories().map((story) => story.filter((type) => type === 'completed').length),
    [1, 1, 1, 1, 1, 1, 1, 1, 0],
  )
  t.match(await job(only('fell-due')), { status: 'succeeded', attempt: 2 })
  t.match(await job(only('ran')), { status: 'succeeded', attempt: 2 })
})

t.test(
  'a job that was parked, and whose session went on to its end before that was written down, is tried again',
  async (t) => {
    const left = new Leftovers()
    for (const id of ['idle', 'closed', 'unended'])
      await left.job(id, parked(id, { maxAttempts: 2 }), jobRequest({ attempts: 2, retryDelayMs: 1_000 }))
    left.session('idle', 'idle', { numTurns: 1 })
    left.session('closed', 'closed', { numTurns: 1 })
    left.session('unended', 'closed')
    const { job } = await left.start(t)
    const error = 'The gateway stopped during the run.'
    for (const id of ['idle', 'closed']) t.match(await job(only(id)), { status: 'queued', attempt: 2, error }, id)
    t.match(await job(only('unended')), { status: 'failed', error: 'The session of the parked job is gone.' })
  },
)

t.test('crash after crash, a job never starts more often than it may', async (t) => {
  const left = new Leftovers()
  await left.job('crashes', { maxAttempts: 3 }, jobRequest({ attempts: 3, retryDelayMs: 0 }))
  let starts = 0
  let ends = 0
  for (let process = 0; process < 6; process++) {
    const sessions = new FakeSessions(left.clock)
    const { events, queue } = await left.start(t, { sessions })
    await left.clock.advance(1)
    await settle()
    starts += events.filter(({ type }) => type === 'job_started').length
    ends += events.filter(({ type }) => type === 'job_completed').length
    queue.drain()
  }
  t.same([starts, ends], [3, 1])
  t.match((await left.adapter.get('crashes'))?.info, { status: 'failed', attempt: 3 })
})

t.test('a run whose session was parked just before the crash is parked, not lost', async (t) => {
  const left = new Leftovers()
  await left.job('a', running('a'))
  const session = left.session('a', 'parked', { sdkSessionId: 'sdk-1' })
  const { told, job, queue } = await left.start(t)
  t.match(await job(only('a')), { status: 'parked', parkedExecutionId: 'exec-1', sdkSessionId: 'sdk-1' })
  t.match(await queue.stats(), { parked: 1, running: 0 })
  session.wake()
  session.complete({ tokens: 4 })
  await settle()
  t.match(await job(only('a')), { status: 'succeeded', attempt: 1, usage: { tokens: 4 } })
  t.same(told(only('a')), ['parked', 'resumed', 'completed'])
})

t.test('a run whose session was woken again goes on', async (t) => {
  const left = new Leftovers()
  await left.job('a', running('a'))
  await left.job('b', parked('b'))
  left.session('a', 'running')
  left.session('b', 'awaiting_approval')
  const { told, job, sessions } = await left.start(t)
  t.match(await job(only('b')), { status: 'running' })
  for (const session of sessions.all) session.complete()
  await settle()
  t.match([await job(only('a')), await job(only('b'))], [{ status: 'succeeded' }, { status: 'succeeded' }])
  t.same([told(only('a')), told(only('b'))], [['completed'], ['resumed', 'completed']])
})

t.test('what a session told before its job was taken up is not missed', async (t) => {
  const left = new Leftovers()
  await left.job('done', parked('done', { maxAttempts: 2 }))
  await left.job('failed', parked('failed'))
  await left.job('removed', parked('removed'))
  const done = left.session('done', 'parked')
  const failed = left.session('failed', 'parked')
  const removed = left.session('removed', 'parked')
  const adapter: QueueAdapter = {
    ...left.adapter,
    async list(filter) {
      const records = await left.adapter.list(filter)
      done.wake()
      done.complete({ tokens: 3 })
      failed.wake()
      failed.fail('no engine')
      removed.end('client')
      left.sessions.remove(removed.info.id)
      await settle()
      return records
    },
  }
  const { told, job } = await left.start(t, { adapter })
  t.match(await job(only('done')), { status: 'succeeded', attempt: 1, usage: { tokens: 3 } })
  t.match(await job(only('failed')), { status: 'failed', error: 'no engine' })
  t.match(await job(only('removed')), { status: 'canceled' })
  t.same(told(only('done')), ['resumed', 'completed'])
})

t.test(
  'a run whose session was removed right before the crash is canceled, also where its turn is told as cut off',
  async (t) => {
    const left = new Leftovers()
    for (const id of ['removed', 'over', 'cut off'])
      await left.job(id, running(id, { maxAttempts: 2 }), jobRequest({ attempts: 2 }))
    const [removed, over, cutOff] = [
      left.session('removed', 'running'),
      left.session('over', 'running'),
      left.session('cut off', 'running'),
    ]
    const cut = { subtype: 'error_during_execution' as const, isError: true, errors: ['It was restarted.'] }
    const adapter: QueueAdapter = {
      ...left.adapter,
      async list(filter) {
        const records = await left.adapter.list(filter)
        removed.complete(cut)
        over.complete()
        cutOff.complete(cut)
        for (const session of [removed, over]) {
          session.end('client')
          left.sessions.remove(session.info.id)
        }
        await settle()
        return records
      },
    }
    const { told, job } = await left.start(t, { adapter })
    t.match(await job(only('removed')), { status: 'canceled', attempt: 1, error: undefined })
    t.same(told(only('removed')), ['completed'])
    t.match(await job(only('over')), { status: 'succeeded' })
    t.match(await job(only('cut off')), { status: 'queued', attempt: 2, error: 'It was restarted.' })
  },
)

t.test(
  'a run whose session somebody has closed right before the crash is canceled, and what it used counts',
  async (t) => {
    const left = new Leftovers()
    const usage = { ...NO_USAGE, inputTokens: 7 }
    for (const id of ['client', 'server']) {
      await left.job(id, running(id, { maxAttempts: 2 }), jobRequest({ attempts: 2 }))
      left.session(id, 'closed', { usage })
    }
    left.sessions.eventsAfter = async (id) => [
      { seq: 1, ts: 0, type: 'status_changed', status: 'closed' },
      { seq: 2, ts: 0, type: 'session_closed', reason: id === 'session-of-client' ? 'client' : 'server' },
    ]
    const { job } = await left.start(t)
    t.match(await job(only('client')), { status: 'canceled', attempt: 1, error: undefined, usage: { tokens: 7 } })
    t.match(await job(only('server')), { status: 'queued', attempt: 2, error: 'The gateway stopped during the run.' })
  },
)

t.test('a session whose turn is over cannot go on: the attempt failed, and what it used counts', async (t) => {
  const left = new Leftovers()
  const usage = { ...NO_USAGE, inputTokens: 7 }
  await left.job('a', running('a', { maxAttempts: 2 }), jobRequest({ attempts: 2 }))
  await left.job('b', parked('b', { maxAttempts: 2 }), jobRequest({ attempts: 2 }))
  left.session('a', 'idle', { usage, cost: 0.25, numTurns: 1 })
  left.session('b', 'idle')
  const { job, queue, sessions } = await left.start(t)
  t.match(await job(only('a')), { status: 'queued', attempt: 2, usage: { tokens: 7, cost: 0.25, numTurns: 1 } })
  t.match(await job(only('b')), { status: 'queued', attempt: 2 })
  t.equal((await queue.stats()).dailyTokensUsed, 7)
  t.same(
    (await sessions.list()).map(({ status }) => status),
    ['closed', 'closed'],
  )
})

t.test('a session that is left over from a job is closed; of a job that nobody knows it is left alone', async (t) => {
  const left = new Leftovers()
  await left.job('over', { status: 'canceled', finishedAt: 1 })
  await left.job('again', { sessionId: 'another' })
  for (const id of ['over', 'again', 'unknown']) left.session(id, 'parked')
  const { sessions } = await left.start(t)
  t.same(sessions.removed.sort(), ['session-of-again', 'session-of-over'])
  t.match(sessions.here('session-of-unknown'), { status: 'parked' })
})

t.test('a session of a job that could not go on stays to be looked at, however long it takes to end', async (t) => {
  const left = new Leftovers()
  await left.job('cut', running('cut'))
  await left.job('unheard', parked('unheard'))
  await left.job('over', { status: 'canceled', finishedAt: 1 })
  for (const id of ['cut', 'unheard', 'over']) left.session(id, 'idle')
  const end = left.sessions.end.bind(left.sessions)
  left.sessions.end = async (id) => {
    await new Promise(setImmediate)
    await end(id)
  }
  const { sessions } = await left.start(t)
  t.same(sessions.removed, [])
  t.same(
    (await sessions.list()).map(({ status }) => status),
    ['closed', 'closed', 'closed'],
  )
})

t.test('the tokens of the day are those of the adapter, and a held queue stays held until midnight', async (t) => {
  const left = new Leftovers()
  await left.job('waits')
  await left.adapter.addDailyTokens('2026-01-01', 100)
  const { queue, job, clock } = await left.start(t, { dailyTokenLimit: 100 })
  t.match(await queue.stats(), { paused: true, dailyTokensUsed: 100, resumesAt: Date.UTC(2026, 0, 2) })
  t.match(await job(only('waits')), { status: 'queued' })
  await clock.advance(86_400_000)
  await settle()
  t.match(await job(only('waits')), { status: 'running' })
  t.match(await queue.stats(), { paused: false, dailyTokensUsed: 0 })
})

t.test('retention goes on over a restart, with the sessions of every attempt', async (t) => {
  const left = new Leftovers()
  const now = left.clock.now()
  const ended = (finishedAt: number, sessionId: string, sessions?: string[]): Partial<StoredJob> => ({
    ...{ status: 'failed', finishedAt, sessionId },
    ...(sessions && { notes: { sessions } }),
  })
  await left.job('old', ended(now - 900, 'session-of-old', ['session-of-first', 'gone-long-ago']))
  await left.job('older', ended(now - 5_000, 'gone'))
  await left.job('young', ended(now, 'session-of-young'))
  await left.job('parked', parked('parked'))
  for (let index = 0; index < 1_200; index++)
    await left.job(`many-${index}`, ended(now - 900, `session-of-many-${index}`))
  for (const id of ['old', 'first', 'young', 'many-0', 'many-700', 'many-1199']) left.session(id, 'closed')
  left.session('parked', 'parked')
  let refuses = 1
  const { sessions, clock, job } = await left.start(t, { retention: { maxAgeMs: 1_000, sweepIntervalMs: 100 } })
  const close = sessions.close.bind(sessions)
  sessions.close = async (id) => {
    if (id === 'session-of-first' && refuses-- > 0) throw new GatewayError('SG_ERR_STORE_UNAVAILABLE')
    await close(id)
  }
  await clock.advance(100)
  await settle()
  t.ok(await left.adapter.get('old'), 'a job stays while its sessions can be found through it')
  await clock.advance(100)
  await settle(20)
  t.same(
    (await sessions.list()).map(({ id }) => id),
    ['session-of-young', 'session-of-parked'],
  )
  t.same(
    (await left.adapter.list()).map(({ info }) => info.id),
    ['parked', 'young'],
  )
  await clock.advance(900)
  await settle()
  t.equal(await left.adapter.get('young'), null, 'at the age that its end in the earlier process gives it')
  t.match(await job(only('parked')), { status: 'parked' })
})

t.test('a job that was claimed as the gateway began to stop has not failed: the next process runs it', async (t) => {
  const left = new Leftovers()
  const { queue, sessions, job } = await left.start(t)
  sessions.onCreate = () => {
    queue.drain()
    throw new GatewayError('SG_ERR_SHUTTING_DOWN')
  }
  const { id } = await queue.submit(jobRequest())
  await settle()
  const waiting = await job(only(id))
  t.match(waiting, { status: 'queued', attempt: 1 })
  t.equal(waiting.error, undefined)
})
