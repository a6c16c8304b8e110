import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import { providerEngine } from '../../src/engines/provider/index.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const CALL = { tools: [{ tool: 'lookup', input: {} }] }
const HOUR = 3_600_000
const RESULT = { status: 'ok', output: { type: 'text', value: 'found' } }

async function start(t: Test, storage: GatewayStorage, queue?: object, clock = new VirtualClock()) {
  const lookup = { name: 'lookup', description: 'Looks something up.', inputSchema: { type: 'object' } }
  const events: JobEvent[] = []
  const server = await buildServer(t, {
    ...{ storage, clock },
    ...(queue && { queue: { onEvent: (event) => events.push(event), ...queue } }),
    profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
    createEngineRunner: providerEngine({ demoChunkDelayMs: 0, deferredTools: [lookup] }),
  })
  const read = async (path: string) => (await server.call('GET', path)).json
  const becomes = (path: string, status: string) => until(async () => (await read(path)).status === status, status)
  const answer = async (executionId: string) =>
    (await server.call('POST', `/executions/${executionId}/result`, RESULT)).json
  const told = () => events.filter(({ type }) => type !== 'job_progress').map(({ type }) => type)
  return { ...server, read, becomes, answer, told, events }
}

/** A gateway with a queue that has left a parked job, and one without on the same storage that its result has come to. */
async function answeredMeanwhile(t: Test, { steps, job = {} }: { steps: object[]; job?: object }) {
  const storage = createMemoryStorage()
  const first = await start(t, storage, {})
  const prompt = `@@${JSON.stringify(steps)}@@`
  const { id } = (await first.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, ...job })).json
  await first.becomes(`/jobs/${id}`, 'parked')
  const parked = await first.read(`/jobs/${id}`)
  await first.worker.close()
  const second = await start(t, storage)
  t.match(await second.answer(parked.parkedExecutionId), { applied: true })
  return { storage, path: `/jobs/${id}`, session: `/sessions/${parked.sessionId}`, parked, second }
}

t.test('a parked job whose result came while there was no queue is over as its turn was', async (t) => {
  const { storage, path, session, parked, second } = await answeredMeanwhile(t, {
    steps: [CALL, { text: 'it is deployed' }],
    job: { attempts: 2 },
  })
  await second.becomes(session, 'idle')
  await second.worker.close()
  const third = await start(t, storage, {})
  await third.becomes(path, 'succeeded')
  const job = await third.read(path)
  t.match(job, { sessionId: parked.sessionId, attempt: 1, result: { text: /it is deployed/ } })
  t.ok(job.usage.tokens > parked.usage.tokens, 'what the turn used then is counted')
  t.same(third.told(), ['job_resumed', 'job_completed'])
  t.match(
    third.events.flatMap((event) => (event.type === 'job_progress' ? event.progress : [])),
    [{ preview: /it is deployed/ }],
  )
  await third.becomes(session, 'closed')
})

t.test('what it used meanwhile is held against its limit', async (t) => {
  const { storage, path, session, parked, second } = await answeredMeanwhile(t, {
    steps: [CALL, { text: 'it is deployed' }],
  })
  await second.becomes(session, 'idle')
  await second.worker.close()
  const third = await start(t, storage, { sessionTokenLimit: parked.usage.tokens })
  await third.becomes(path, 'failed')
  t.match(await third.read(path), { error: `The run used more than ${parked.usage.tokens} tokens.` })
})

t.test('one that waits for another result by then is told of with that one', async (t) => {
  const { storage, path, session, parked, second } = await answeredMeanwhile(t, {
    steps: [CALL, CALL, { text: 'it is deployed' }],
  })
  await second.becomes(session, 'parked')
  await second.worker.close()
  const third = await start(t, storage, {})
  const { executionId } = (await third.read(session)).parked.executions[0]
  await until(async () => (await third.read(path)).parkedExecutionId === executionId, 'the other execution')
  t.not(executionId, parked.parkedExecutionId)
  t.match(await third.answer(executionId), { applied: true })
  await third.becomes(path, 'succeeded')
  t.same(third.told(), ['job_resumed', 'job_parked', 'job_resumed', 'job_completed'])
})

t.test('and has the grace of a start when it has waited for too long by then', async (t) => {
  const { storage, path, session, second } = await answeredMeanwhile(t, {
    steps: [CALL, CALL, { text: 'it is deployed' }],
  })
  await second.becomes(session, 'parked')
  await second.worker.close()
  const later = new VirtualClock(second.clock.now() + 2 * HOUR)
  const third = await start(t, storage, { maxParkedDurationMs: HOUR }, later)
  const { executionId } = (await third.read(session)).parked.executions[0]
  await until(async () => (await third.read(path)).parkedExecutionId === executionId, 'the other execution')
  await later.advance(30_000)
  t.match(await third.read(path), { status: 'parked' })
  await later.advance(30_000)
  await third.becomes(path, 'failed')
  t.match(await third.read(path), { error: /parked for more than/ })
})

for (const left of ['parked', 'running, as a crash leaves one whose session alone is written as parked'])
  t.test(`a job is canceled by the removal of its session where there is no queue, ${left}`, async (t) => {
    const storage = createMemoryStorage()
    const first = await start(t, storage, {})
    const prompt = `@@${JSON.stringify([CALL, { text: 'it is deployed' }])}@@`
    const { id } = (await first.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, attempts: 2 })).json
    await first.becomes(`/jobs/${id}`, 'parked')
    const { sessionId } = await first.read(`/jobs/${id}`)
    await first.worker.close()
    const unparked = { status: 'running', parkedAt: undefined, parkedExecutionId: undefined, notes: undefined } as const
    if (left !== 'parked') t.ok(await storage.queue.update(id, unparked))
    const second = await start(t, storage)
    t.match(await second.call('DELETE', `/sessions/${sessionId}`), { status: 200 })
    await second.worker.close()
    const third = await start(t, storage, {})
    t.match(await third.read(`/jobs/${id}`), { status: 'canceled', attempt: 1, sessionId })
    t.same(third.told(), ['job_completed'])
  })

t.test('the removal of the session of an earlier attempt where there is no queue cancels no job', async (t) => {
  const clock = new VirtualClock()
  const storage = createMemoryStorage({ now: () => clock.now() })
  const first = await start(t, storage, { sessionTokenLimit: 1 }, clock)
  const { id } = (await first.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'hello' }, attempts: 2 })).json
  await until(async () => (await first.read(`/jobs/${id}`)).attempt === 2, 'the end of the first attempt')
  const { sessionId } = await first.read(`/jobs/${id}`)
  await first.worker.close()
  const second = await start(t, storage, undefined, clock)
  t.match(await second.call('DELETE', `/sessions/${sessionId}`), { status: 200 })
  await second.worker.close()
  await clock.advance(HOUR)
  t.match(await storage.queue.claimNext(), { info: { id, sessionId } }, 'by a process that dies with it')
  const third = await start(t, storage, {}, clock)
  await until(async () => (await third.read(`/jobs/${id}`)).finishedAt, 'the end of the job')
  t.match(await third.read(`/jobs/${id}`), { status: 'succeeded', attempt: 2 })
})
