import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import { JobElsewhere } from '../../src/jobs/elsewhere.js'
import type { JobQueueOptions } from '../../src/jobs/queue.js'
import { systemClock } from '../../src/lib/clock.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { type FakeSession, FakeSessions, jobRequest, jobWorld, PROFILE } from '../fixtures/job-world.js'
import type { VirtualClock } from '../fixtures/virtual-clock.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

// what these queues wait for is told by a real database
const clock = systemClock as unknown as VirtualClock
let schemas = 0

/** Queues on one schema, each with sessions of its own that do what the test says. */
async function nodesOf<Names extends string[]>(
  t: Test,
  names: readonly [...Names],
  {
    onCreate,
    without = [],
    agentsStay = false,
    ...options
  }: Partial<JobQueueOptions> & {
    onCreate?: (session: FakeSession) => void
    /** Nodes on which there is no room for sessions. */
    without?: readonly string[]
    /** Jobs of command-line agents stay with the node that took them in. */
    agentsStay?: boolean
  } = {},
) {
  const server = await postgres()
  const schema = `queue_${++schemas}`
  const started = async (name: string) => {
    const storage = createPostgresStorage({ url: server.url(), schema })
    const { maxConcurrency: slots = 1 } = options
    const node = { name, url: `http://${name}.test`, protocol: 1, version: '1', slots, config: '', profiles: [] }
    storage.cluster.announce(node, 10_000)
    await storage.open()
    t.teardown(() => storage.close())
    const sessions = new FakeSessions(clock)
    if (without.includes(name)) sessions.room = 0
    if (onCreate) sessions.onCreate = (session) => void setImmediate(onCreate, session)
    const { queue: adapter, outbox, cluster } = storage
    const of = ({ engine }: { engine: string }) => (engine === 'cli' ? name : undefined)
    const homes = agentsStay ? { node: name, of } : undefined
    const world = await jobWorld(t, { ...options, homes, clock, sessions, adapter, outbox, cluster, oneWrite: true })
    cluster.on('taken', ({ jobIds }) => {
      world.queue.expect(jobIds)
      void world.queue.takeUp(jobIds)
    })
    return { name, storage, ...world }
  }
  const nodes: Awaited<ReturnType<typeof started>>[] = []
  for (const name of names) nodes.push(await started(name))
  await until(() => nodes.every(({ storage }) => storage.cluster.nodes().length === names.length), 'all nodes')
  return Object.assign(nodes as { [I in keyof Names]: Awaited<ReturnType<typeof started>> }, { started })
}

/** Where every profile is of a command-line agent but that of `PROFILE`. */
const admission: JobQueueOptions['admission'] = {
  examine: async ({ cwd, profile = PROFILE.info.name }) => ({
    profile: { ...PROFILE, info: { name: profile, engine: profile === PROFILE.info.name ? 'provider' : 'cli' } },
    cwd,
  }),
}

const types = (events: readonly JobEvent[], id: string) =>
  events.filter(({ job }) => job.id === id).map(({ type }) => type)

if (hasPostgres()) {
  t.test(
    '300 jobs that are submitted to three nodes run once each, and every node says the same of them',
    async (t) => {
      const nodes = await nodesOf(t, ['a', 'b', 'c'], { maxConcurrency: 4, onCreate: (session) => session.complete() })
      const jobs = await Promise.all(
        Array.from({ length: 300 }, (_, index) => nodes[index % 3]!.queue.submit(jobRequest())),
      )
      const [{ queue }] = nodes
      await until(async () => {
        const { queued, running } = await queue.stats()
        return queued + running === 0
      }, 'no job is left')
      const ran = nodes.flatMap(({ sessions }) => sessions.all.map(({ info }) => info.jobId))
      t.strictSame([...ran].sort(), jobs.map(({ id }) => id).sort())
      t.ok(nodes.every(({ sessions }) => sessions.all.length > 0))
      for (const { id } of jobs) {
        const seen = await Promise.all(nodes.map((node) => node.queue.get(id)))
        t.match(seen[0], { status: 'succeeded', attempt: 1 })
        t.strictSame(seen, [seen[0], seen[0], seen[0]])
      }
      const stats = await Promise.all(nodes.map((node) => node.queue.stats()))
      t.match(stats[0], { maxConcurrency: 12, queued: 0, running: 0, parked: 0 })
      t.strictSame(stats, [stats[0], stats[0], stats[0]])
    },
  )

  t.test('what a dead node ran is a failed attempt, and goes on at another one', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], { maxConcurrency: 2, without: ['b'] })
    const again = await a.queue.submit(jobRequest({ attempts: 2, retryDelayMs: 1 }))
    const once = await a.queue.submit(jobRequest())
    await until(() => a.sessions.all.length === 2, 'both run')
    t.match(await b.storage.cluster.placeOfJob(once.id), { owner: { name: 'a' } })
    t.match(await b.queue.stats(), { running: 2, maxConcurrency: 4 })
    b.sessions.makeRoom(2)
    await a.storage.close()
    await until(async () => (await b.queue.get(once.id))?.status === 'failed', 'it has failed')
    await until(() => b.sessions.all.length === 1, 'it runs again')
    t.match(await b.queue.get(once.id), { error: 'The gateway stopped during the run.', attempt: 1 })
    t.match(await b.queue.get(again.id), { status: 'running', attempt: 2 })
    t.match(types(b.events, again.id), ['job_retrying', 'job_started'])
    // it does not know better, and is not heard
    for (const session of a.sessions.all) session.complete()
    b.sessions.last.complete()
    await until(async () => (await b.queue.get(again.id))?.status === 'succeeded', 'it has ended')
    t.match(await b.queue.stats(), { queued: 0, running: 0, maxConcurrency: 2 })
  })

  t.test('jobs of command-line agents stay with the node that took them in, dead or alive', async (t) => {
    const nodes = await nodesOf(t, ['a', 'b'], { agentsStay: true, admission, maxConcurrency: 2, without: ['b'] })
    const [a, b] = nodes
    const running = await a.queue.submit(jobRequest({ attempts: 2, retryDelayMs: 1 }, 'cli'))
    await until(() => a.sessions.all.length === 1, 'it runs')
    a.sessions.room = 0
    const urgent = await a.queue.submit(jobRequest({ priority: 9 }, 'cli'))
    const waiting = await a.queue.submit(jobRequest({ priority: 9 }, 'cli'))
    const anywhere = await a.queue.submit(jobRequest())
    const [ran, atB] = [() => b.sessions.all.map(({ info }) => info.jobId), await b.queue.submit(jobRequest({}, 'cli'))]
    b.sessions.makeRoom(9)
    await until(() => ran().length === 2, 'the other one runs what may run there')
    t.strictSame(ran(), [anywhere.id, atB.id])
    t.match(await b.queue.cancel(waiting.id), { status: 'canceled' })
    for (const session of b.sessions.all) session.complete()

    await a.storage.close()
    await until(async () => (await b.queue.get(running.id))?.attempt === 2, 'its attempt has failed')
    const later = await b.queue.submit(jobRequest({ priority: -1 }))
    await until(() => ran().length === 3, 'the other one goes on with what is behind those')
    t.strictSame(ran()[2], later.id)
    b.sessions.last.complete()
    t.match(await b.queue.get(urgent.id), { status: 'queued' })
    t.equal('notes' in (await b.queue.get(urgent.id))!, false)

    const again = await nodes.started('a')
    await until(() => again.sessions.all.length === 2, 'they are its own when it is back')
    t.strictSame(new Set(again.sessions.all.map(({ info }) => info.jobId)), new Set([urgent.id, running.id]))
  })

  t.test('where what agents keep is shared, jobs of a home begin anywhere', async (t) => {
    const nodes = await nodesOf(t, ['a'], { agentsStay: true, admission, without: ['a'] })
    const { id } = await nodes[0].queue.submit(jobRequest({}, 'cli'))
    const { adapter } = nodes[0]
    t.match(await adapter.claim!(1, { home: 'b' }), { jobs: [] })
    t.match(await adapter.claim!(1), { jobs: [{ info: { id } }] })
  })

  t.test('a parked job of a dead node waits on at the one that has its session', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], { without: ['b'] })
    const { id } = await a.queue.submit(jobRequest())
    await until(() => a.sessions.all.length === 1, 'it runs')
    a.sessions.last.park()
    await until(async () => (await b.queue.get(id))?.status === 'parked', 'it is parked')
    const moved = b.sessions.adopt(a.sessions.last.info)
    await a.storage.close()
    await until(() => b.queue.isUnderWay(id), 'it was taken up')
    t.match(await b.queue.get(id), { status: 'parked', attempt: 1 })
    moved.wake()
    moved.complete()
    await until(async () => (await b.queue.get(id))?.status === 'succeeded', 'it has ended')
    t.match(types(b.events, id), ['job_resumed', 'job_completed'])
  })

  t.test('what a parked job has used is the same at every node', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], { without: ['b'] })
    const { id } = await a.queue.submit(jobRequest({ attempts: 2, retryDelayMs: 0 }))
    const parks = async (sessions: number) => {
      await until(() => a.sessions.all.length === sessions, 'it runs')
      a.sessions.last.say('working', 40)
      a.sessions.last.park()
      await until(async () => (await b.queue.get(id))?.status === 'parked', 'it is parked')
    }
    await parks(1)
    t.match(await b.queue.get(id), { usage: { tokens: 40, outputTokens: 40 } })
    a.sessions.last.wake()
    a.sessions.last.fail('broken')
    await parks(2)
    const { items } = await b.queue.page({})
    t.match(items, [{ id, attempt: 2, usage: { tokens: 80 } }])
    t.strictSame(items[0], await a.queue.get(id))
  })

  t.test('what waits is canceled by any node, what runs by its own', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], { without: ['b'] })
    const running = await a.queue.submit(jobRequest())
    await until(() => a.sessions.all.length === 1, 'it runs')
    const waiting = await a.queue.submit(jobRequest())
    t.match(await b.queue.cancel(waiting.id), { status: 'canceled' })
    t.match(await b.queue.cancel(waiting.id), { status: 'canceled' })
    await t.rejects(b.queue.cancel(running.id), { name: 'JobElsewhere', node: { name: 'a' } })
    t.match(await b.queue.get(running.id), { status: 'running' })
    t.match(await a.queue.cancel(running.id), { status: 'canceled' })
    t.equal(a.sessions.all.length, 1)
    t.match(await b.queue.stats(), { queued: 0, running: 0 })
    await t.rejects(b.queue.cancel('nowhere'), { code: 'SG_ERR_JOB_NOT_FOUND' })
  })

  t.test('a cancel that races a claim ends the job once', async (t) => {
    const nodes = await nodesOf(t, ['a', 'b', 'c'], { maxConcurrency: 50 })
    const [a, b, c] = nodes
    const canceled = async (id: string) => {
      try {
        return await b.queue.cancel(id)
      } catch (error) {
        if (!(error instanceof JobElsewhere)) throw error
        return (error.node.name === 'a' ? a : c).queue.cancel(id)
      }
    }
    const ends = await Promise.all(
      Array.from({ length: 60 }, async () => canceled((await a.queue.submit(jobRequest())).id)),
    )
    t.ok(ends.every(({ status }) => status === 'canceled'))
    const told = nodes.flatMap(({ events }) => events.filter(({ type }) => type === 'job_completed'))
    t.strictSame(told.map(({ job }) => job.id).sort(), ends.map(({ id }) => id).sort())
    t.match(await c.queue.stats(), { queued: 0, running: 0 })
  })

  t.test('no node begins a job once all of them have used the tokens of the day up', async (t) => {
    const nodes = await nodesOf(t, ['a', 'b'], {
      dailyTokenLimit: 100,
      without: ['b'],
      onCreate: (session) => session.complete({ tokens: 60 }),
    })
    const [a, b] = nodes
    for (let count = 0; count < 6; count++) await a.queue.submit(jobRequest())
    await until(async () => (await b.queue.stats()).dailyTokensUsed === 120, 'the tokens are used up')
    b.sessions.makeRoom(10)
    await until(async () => (await b.queue.stats()).paused, 'the other one pauses, too')
    const { jobs, paused } = await b.adapter.claim!(5, {
      tokens: { day: new Date().toISOString().slice(0, 10), limit: 100 },
    })
    t.strictSame([jobs, paused], [[], true])
    const stats = await Promise.all(nodes.map(({ queue }) => queue.stats()))
    t.match(stats[0], { queued: 4, running: 0, paused: true, dailyTokensUsed: 120 })
    t.strictSame(stats[1], stats[0])
    t.equal(b.sessions.all.length, 0)
  })

  t.test('what is delayed or refused at one node is run by another', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], {
      without: ['a'],
      onCreate: (session) => session.complete(),
    })
    const delayed = await a.queue.submit(jobRequest({ runAt: Date.now() + 50 }))
    const ready = await a.queue.submit(jobRequest())
    for (const { id } of [delayed, ready])
      await until(async () => (await a.queue.get(id))?.status === 'succeeded', 'it has run')
    t.equal(b.sessions.all.length, 2)
  })

  t.test('the bound of the queue is that of all nodes together', async (t) => {
    const [a, b] = await nodesOf(t, ['a', 'b'], { maxQueuedJobs: 3, without: ['a', 'b'] })
    for (let count = 0; count < 3; count++) await a.queue.submit(jobRequest())
    await until(async () => (await b.queue.stats()).queued === 3, 'the other one has counted them')
    await t.rejects(b.queue.submit(jobRequest()), { code: 'SG_ERR_TOO_MANY' })
    await t.rejects(a.queue.submit(jobRequest()), { code: 'SG_ERR_TOO_MANY' })
  })

  t.test('the bound of the queue holds for jobs that come together, and that wait for their time', async (t) => {
    const [a] = await nodesOf(t, ['a'], { maxQueuedJobs: 3, without: ['a'] })
    const runAt = Date.now() + 3_600_000
    const together = await Promise.allSettled(Array.from({ length: 12 }, () => a!.queue.submit(jobRequest({ runAt }))))
    t.equal(together.filter(({ status }) => status === 'fulfilled').length, 3)
    await t.rejects(a!.queue.submit(jobRequest({ runAt })), { code: 'SG_ERR_TOO_MANY' })
  })

  t.test(
    'the bound of the queue is passed by no more than the parts of the other nodes when jobs come to all of them together',
    async (t) => {
      const names = ['a', 'b', 'c'] as const
      const nodes = await nodesOf(t, names, { maxQueuedJobs: 20, without: names })
      const runAt = Date.now() + 3_600_000
      const submit = (index: number) => nodes[index % 3]!.queue.submit(jobRequest({ runAt }))
      const together = await Promise.allSettled(Array.from({ length: 90 }, (_, index) => submit(index)))
      const taken = together.filter(({ status }) => status === 'fulfilled').length
      // a node adds a third of what it has counted as free while the parts of the other two are under way
      t.ok(taken >= 20 && taken <= 20 + 2 * 6, `${taken} of 20`)
      for (const { queue } of nodes) {
        await until(async () => (await queue.stats()).queued === taken, 'it has counted them')
        await t.rejects(queue.submit(jobRequest({ runAt })), { code: 'SG_ERR_TOO_MANY' })
      }
    },
  )

  t.test('jobs that have begun leave room in the queue at once', async (t) => {
    const [a] = await nodesOf(t, ['a'], { maxQueuedJobs: 2, onCreate: (session) => session.complete() })
    for (let count = 0; count < 8; count++) {
      const { id } = await a!.queue.submit(jobRequest())
      await until(async () => (await a!.queue.get(id))?.status === 'succeeded', 'it has run')
    }
  })

  t.test('they leave it also for several that come together', async (t) => {
    const [a] = await nodesOf(t, ['a'], { maxQueuedJobs: 10, onCreate: (session) => session.complete() })
    for (let count = 0; count < 6; count++) {
      const { id } = await a!.queue.submit(jobRequest())
      await until(async () => (await a!.queue.get(id))?.status === 'succeeded', 'it has run')
    }
    const runAt = Date.now() + 3_600_000
    const together = await Promise.allSettled(Array.from({ length: 12 }, () => a!.queue.submit(jobRequest({ runAt }))))
    t.equal(together.filter(({ status }) => status === 'fulfilled').length, 10)
  })
}
