import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import type { QueueServerOptions } from '../../src/jobs/options.js'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native, ok, SlowStore } from '../fixtures/parked.js'
import { turns } from '../fixtures/turns.js'

const parkDelayMs = 2_000

/** A job in its turn, whose session somebody is attached to. */
async function build(
  t: Test,
  {
    session = {},
    parking = { parkDelayMs },
    ...queueOptions
  }: QueueServerOptions & Pick<BuildOptions, 'parking'> & { session?: object } = {},
) {
  const events: JobEvent[] = []
  const onEvent = (event: JobEvent) => void events.push(event)
  const world = await buildGateway(t, { queue: { ...queueOptions, onEvent }, parking, script: native })
  const queue = world.gateway.queue!
  const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go', ...session }, maxDurationMs: 5_000 })
  await until(() => world.engine.runners[0]?.sent.length === 1)
  const runner = world.engine.last
  const sessionId = (await queue.get(id))!.sessionId!
  const watched = await world.registry.open(sessionId, UNLIMITED)
  const attachment = watched.attach(new FakeSink(), {})
  const job = async () => (await queue.get(id))!
  const told = () => events.flatMap(({ type, job }) => (job.id === id && type !== 'job_progress' ? type : []))
  const is = (status: string) => until(async () => (await job()).status === status, status)
  return { ...world, queue, runner, sessionId, job, told, is, detach: () => watched.detach(attachment) }
}

t.test('whoever looks at a job that waits neither holds its slot nor lets its clock kill it', async (t) => {
  const { queue, runner, registry, engine, gateway, clock, sessionId, job, told, is } = await build(t)
  await runner.defer('e1')
  const next = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'next' } })
  await clock.advance(parkDelayMs - 1)
  t.match(await job(), { status: 'running' })
  await clock.advance(1)
  await is('parked')
  t.match(await job(), { parkedExecutionId: 'e1', parkedAt: clock.now() })
  t.match(await registry.get(sessionId), { status: 'running', attachedClients: 1 }, 'it keeps its engine')
  await until(() => engine.runners.length === 2 && engine.last.sent.length === 1, 'the next job')
  engine.last.complete()
  await until(async () => (await queue.get(next.id))?.status === 'succeeded')
  await clock.advance(60_000)
  t.match(await job(), { status: 'parked' }, 'its clock stands still')
  t.same(await gateway.executions.submit('e1', ok), { applied: true, sessionId })
  await is('running')
  t.same(runner.settled, [{ executionId: 'e1', result: ok }])
  t.notOk('parkedAt' in (await job()))
  await clock.advance(2_999)
  t.match(await job(), { status: 'running' }, 'only what it ran is counted')
  runner.complete()
  await is('succeeded')
  t.same(told(), ['job_submitted', 'job_started', 'job_parked', 'job_resumed', 'job_completed'])
  t.match(await registry.get(sessionId), { status: 'closed' })
})

t.test('when they leave, the session parks without a word about the job, and the result resumes both', async (t) => {
  const { runner, registry, engine, gateway, clock, sessionId, told, is, detach } = await build(t)
  await runner.defer('e1')
  await clock.advance(parkDelayMs)
  await is('parked')
  detach()
  await clock.advance(parkDelayMs)
  await until(async () => (await registry.get(sessionId))?.status === 'parked')
  t.same(told(), ['job_submitted', 'job_started', 'job_parked'])
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
  await is('running')
  engine.last.complete()
  await is('succeeded')
  t.same(told().slice(2), ['job_parked', 'job_resumed', 'job_completed'])
})

t.test('one that goes on before its time was never parked, and its next wait is a new one', async (t) => {
  const { runner, gateway, clock, job, told, is } = await build(t)
  await runner.defer('e1')
  await clock.advance(parkDelayMs - 1)
  await gateway.executions.submit('e1', ok)
  await runner.defer('e2')
  await clock.advance(1)
  t.match(await job(), { status: 'running' })
  await clock.advance(parkDelayMs - 1)
  await is('parked')
  t.match(await job(), { parkedExecutionId: 'e2' })
  t.same(told(), ['job_submitted', 'job_started', 'job_parked'])
})

t.test('a question without a time limit frees the slot too, and its answer takes it again', async (t) => {
  const { runner, registry, clock, sessionId, told, is } = await build(t, { session: { approvalTimeoutMs: 0 } })
  const answer = runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await clock.advance(parkDelayMs)
  await is('parked')
  const session = await registry.open(sessionId, UNLIMITED)
  const [request] = session.pendingPermissions
  await registry.resolvePermission(sessionId, request!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await answer, { behavior: 'allow' })
  await is('running')
  runner.complete()
  await is('succeeded')
  t.same(told().slice(2), ['job_parked', 'job_resumed', 'job_completed'])
})

t.test('a job that is held can be canceled, and its session can be looked at afterwards', async (t) => {
  const { queue, runner, registry, clock, sessionId, job, is } = await build(t)
  await runner.defer('e1')
  await clock.advance(parkDelayMs)
  await is('parked')
  t.match(await queue.cancel((await job()).id), { status: 'canceled' })
  t.match(await registry.get(sessionId), { status: 'closed' })
  await until(() => runner.closed)
})

t.test('the time that it may be parked counts for one that is watched', async (t) => {
  const { runner, clock, job, is } = await build(t, { maxParkedDurationMs: 10_000 })
  await runner.defer('e1')
  await clock.advance(parkDelayMs + 10_000)
  await is('failed')
  t.match(await job(), { error: 'The run was parked for more than 10000 ms.' })
})

t.test('queued jobs wait while the gateway runs as many sessions as it may, and none is refused for it', async (t) => {
  const world = await buildGateway(t, { queue: { maxConcurrency: 4 }, maxSessions: 1, script: native })
  const { registry, engine } = world
  const queue = world.gateway.queue!
  const client = await registry.create({ cwd: SOME_CWD })
  const submit = () => queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
  const jobs = [await submit(), await submit(), await submit()]
  const statuses = async () => Promise.all(jobs.map(async ({ id }) => (await queue.get(id))?.status))
  await turns()
  t.same(await statuses(), ['queued', 'queued', 'queued'])
  await registry.close(client.id)
  for (let n = 0; n < jobs.length; n++) {
    await until(() => engine.last.sent.length === 1 && engine.runners.length === n + 2, `job ${n}`)
    await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' }, 'the place is the job’s')
    engine.last.complete()
    await until(async () => (await statuses())[n] === 'succeeded')
  }
  t.match(await statuses(), ['succeeded', 'succeeded', 'succeeded'])
  await until(() => registry.count().live === 0)
  await registry.create({ cwd: SOME_CWD })
  t.match(await queue.stats(), { queued: 0, running: 0 }, 'and every place was given back')
})

t.test('a job that is canceled while it is claimed gives its place back', async (t) => {
  const world = await buildGateway(t, { queue: {}, maxSessions: 1, script: native })
  const queue = world.gateway.queue!
  for (let n = 0; n < 3; n++) {
    const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
    await queue.cancel(id)
  }
  const create = () => world.registry.create({ cwd: SOME_CWD })
  await until(() => create().catch(() => undefined), 'a place')
  await t.rejects(create(), { code: 'SG_ERR_TOO_MANY' }, 'one')
})

/** A durable gateway that is killed while somebody looks at a job that waits. */
async function killedWhileWatched(t: Test, session: object = {}) {
  const options = { queue: { maxConcurrency: 1 }, parking: { parkDelayMs }, script: native }
  const world = await buildJournaled(t, options)
  const { registry, engine, clock } = world
  const queue = world.gateway.queue!
  const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go', ...session } })
  await until(() => engine.runners[0]?.sent.length === 1)
  const sessionId = (await queue.get(id))!.sessionId!
  ;(await registry.open(sessionId, UNLIMITED)).attach(new FakeSink(), {})
  const parked = async () => {
    await clock.advance(parkDelayMs)
    await until(async () => (await queue.get(id))?.status === 'parked')
  }
  const restart = async () => {
    const next = await world.again()
    return { ...next, queue: next.gateway.queue!, executions: next.gateway.executions }
  }
  return { ...world, runner: engine.last, queue, id, sessionId, parked, restart }
}

t.test('a parked job that somebody looked at is parked after a crash, too, and goes on with its result', async (t) => {
  const { runner, id, sessionId, parked, restart } = await killedWhileWatched(t)
  await runner.defer('e1')
  await parked()
  const { queue, registry, engine, executions } = await restart()
  t.match(await queue.get(id), { status: 'parked', parkedExecutionId: 'e1', attempt: 1 })
  t.match(registry.here(sessionId), { status: 'parked', parked: { executions: [{ executionId: 'e1' }] } })
  t.same(await executions.submit('e1', ok), { applied: true, sessionId })
  await until(() => engine.runners.length === 1 && engine.last.settled.length === 1)
  engine.last.complete()
  await until(async () => (await queue.get(id))?.status === 'succeeded')
  t.match(await queue.get(id), { attempt: 1 })
})

t.test('a result that came before the crash is not lost, nor a question that was answered', async (t) => {
  const { runner, id, sessionId, parked, restart, gateway, registry } = await killedWhileWatched(t, {
    approvalTimeoutMs: 0,
  })
  await runner.defer('e1')
  void runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await parked()
  const [request] = (await registry.open(sessionId, UNLIMITED)).pendingPermissions
  await registry.resolvePermission(sessionId, request!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
  const { queue, engine, executions } = await restart()
  t.match(await executions.submit('e1', ok), { applied: false })
  await until(() => engine.runners.length === 1 && engine.last.settled.length === 1)
  t.match(await engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} }), {
    behavior: 'allow',
  })
  engine.last.complete()
  await until(async () => (await queue.get(id))?.status === 'succeeded')
})

t.test('a job is not shown as parked before that can outlast a crash', async (t) => {
  const { runner, id, queue, clock, storage, restart } = await killedWhileWatched(t)
  const { journal } = storage
  const write = journal.write.bind(journal)
  let refused = 0
  journal.write = async (what) => {
    if (!what.snapshot) return write(what)
    refused++
    throw new Error('no space left on device')
  }
  await runner.defer('e1')
  await clock.advance(parkDelayMs)
  await until(() => refused > 0)
  t.match(await queue.get(id), { status: 'running' })
  journal.write = write
  await clock.advance(1_000)
  await until(async () => (await queue.get(id))?.status === 'parked')
  t.match(await (await restart()).queue.get(id), { status: 'parked' })
})

t.test('a job that went on from its record does not hold up a shutdown, and goes on after it', async (t) => {
  const { runner, id, parked, gateway, restart } = await killedWhileWatched(t)
  await runner.defer('e1')
  await parked()
  await gateway.executions.submit('e1', ok)
  await gateway.close()
  const { queue, engine } = await restart()
  await until(() => engine.runners.length === 1 && engine.last.settled.length === 1)
  engine.last.complete()
  await until(async () => (await queue.get(id))?.status === 'succeeded')
  t.match(await queue.get(id), { attempt: 1 })
})

t.test('a job whose only question was answered before the crash goes on, whatever its engine was doing', async (t) => {
  const { id, runner, sessionId, parked, restart, registry } = await killedWhileWatched(t, { approvalTimeoutMs: 0 })
  const ask = { toolName: 'Write', toolUseId: 'u1', input: {} }
  const answer = runner.host.requestPermission(ask)
  await parked()
  const [request] = (await registry.open(sessionId, UNLIMITED)).pendingPermissions
  await registry.resolvePermission(sessionId, request!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await answer, { behavior: 'allow' })
  const { queue, engine, registry: next } = await restart()
  await until(() => engine.runners.length === 1 && next.here(sessionId)?.status === 'running')
  t.match(await engine.last.host.requestPermission(ask), { behavior: 'allow' })
  engine.last.complete()
  await until(async () => (await queue.get(id))?.status === 'succeeded')
})

t.test('an engine that gives no snapshot of a job that is looked at is no fault of the store', async (t) => {
  const errors: string[] = []
  const parking = { parkDelayMs, onError: ({ message }: Error) => void errors.push(message) }
  const { registry, runner, gateway, clock, sessionId, detach, job } = await build(t, { parking })
  runner.snapshot = () => undefined as never
  await runner.defer('e1')
  await clock.advance(parkDelayMs)
  await until(() => errors.length > 0)
  detach()
  await clock.advance(parkDelayMs)
  await until(() => errors.length > 1)
  t.match(await registry.get(sessionId), { status: 'running' })
  t.match(await job(), { status: 'running' })
  t.ok(registry.isWritable)
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
})

t.test('what the store refused of a job that is looked at is no fault of it any more once it is kept', async (t) => {
  const store = new SlowStore()
  store.broken = true
  let refused = 0
  const parking = { parkDelayMs, store, onError: () => refused++ }
  const { registry, runner, clock, is, detach } = await build(t, { parking })
  await runner.defer('e1')
  await clock.advance(parkDelayMs)
  await until(() => refused > 0)
  store.broken = false
  await clock.advance(1_000)
  await is('parked')
  detach()
  t.ok(registry.isWritable)
})
