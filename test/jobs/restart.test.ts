import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import { providerEngine } from '../../src/engines/provider/index.js'
import { deferred } from '../../src/lib/deferred.js'
import type { SessionStore } from '../../src/sessions/kept/store.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'

const WAITS = `@@${JSON.stringify([{ tools: [{ tool: 'lookup', input: {} }] }, { text: 'it is deployed' }])}@@`
const RESULT = { status: 'ok', output: { type: 'text', value: 'found' } }

/** A process on stores that outlast it. */
async function start(t: Test, stores: { adapter: ReturnType<typeof createMemoryQueueAdapter>; store: SessionStore }) {
  const lookup = { name: 'lookup', description: 'Looks something up.', inputSchema: { type: 'object' } }
  const events: JobEvent[] = []
  const server = await buildServer(t, {
    queue: { adapter: stores.adapter, onEvent: (event) => events.push(event) },
    parking: { store: stores.store },
    profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
    createEngineRunner: providerEngine({ demoChunkDelayMs: 0, deferredTools: [lookup] }),
  })
  const job = async (id: string) => (await server.call('GET', `/jobs/${id}`)).json
  const becomes = (id: string, status: string) => until(async () => (await job(id)).status === status, status)
  const told = () => events.filter(({ type }) => type !== 'job_progress').map(({ type }) => type)
  return { ...server, job, becomes, told }
}

/** Leaves a parked job behind. */
async function parkedBefore(t: Test) {
  const stores = { adapter: createMemoryQueueAdapter(), store: new MemorySessionStore() }
  const first = await start(t, stores)
  const { id } = (await first.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: WAITS } })).json
  await first.becomes(id, 'parked')
  const parked = await first.job(id)
  await first.worker.close()
  return { stores, id, parked }
}

t.test('a parked job rejoins its session and completes once its result is there', async (t) => {
  const { stores, id, parked } = await parkedBefore(t)
  const { job, becomes, told, call } = await start(t, stores)
  t.match(await job(id), { ...parked, status: 'parked' })
  t.match((await call('GET', '/queue')).json, { parked: 1, running: 0 })
  t.same(told(), [])
  t.match((await call('POST', `/executions/${parked.parkedExecutionId}/result`, RESULT)).json, { applied: true })
  await becomes(id, 'succeeded')
  t.match(await job(id), { sessionId: parked.sessionId, attempt: 1, result: { text: /it is deployed/ } })
  t.same(told(), ['job_resumed', 'job_completed'])
})

t.test('a job that was not written as parked yet when its session was is parked then', async (t) => {
  const { stores, id, parked } = await parkedBefore(t)
  const unwritten = { status: 'running', parkedAt: undefined, parkedExecutionId: undefined } as const
  await stores.adapter.update(id, { ...unwritten, notes: { generation: '' } })
  const { job, becomes, told, call } = await start(t, stores)
  await becomes(id, 'parked')
  t.match(await job(id), { parkedExecutionId: parked.parkedExecutionId, attempt: 1 })
  await call('POST', `/executions/${parked.parkedExecutionId}/result`, RESULT)
  await becomes(id, 'succeeded')
  t.same(told(), ['job_parked', 'job_resumed', 'job_completed'])
})

t.test('a job whose end was written before its session was discarded leaves nothing to wake', async (t) => {
  const { stores, id, parked } = await parkedBefore(t)
  await stores.adapter.update(id, { status: 'canceled', finishedAt: 1, parkedAt: undefined })
  const { job, told, call } = await start(t, stores)
  t.equal((await call('GET', `/sessions/${parked.sessionId}`)).status, 404)
  t.not((await call('POST', `/executions/${parked.parkedExecutionId}/result`, RESULT)).json.applied, true)
  t.match(await job(id), { status: 'canceled' })
  t.same(told(), [])
})

t.test('a parked job is canceled once it is written that nothing wakes its session', async (t) => {
  const store = new MemorySessionStore()
  const writing = deferred()
  let isParked = false
  let isAsked = false
  const slow: SessionStore = {
    async save(record) {
      isAsked = isParked
      if (isParked) await writing.promise
      await store.save(record)
    },
    get: (id) => store.get(id),
    list: () => store.list(),
    delete: (id) => store.delete(id),
  }
  const { call, becomes, job } = await start(t, { adapter: createMemoryQueueAdapter(), store: slow })
  const { id } = (await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: WAITS } })).json
  await becomes(id, 'parked')
  isParked = true
  let isTold = false
  const canceled = call('DELETE', `/jobs/${id}`).finally(() => {
    isTold = true
  })
  await until(() => isAsked, 'that it is to be written')
  await becomes(id, 'canceled')
  t.notOk(isTold, 'a crash now would leave the session to be woken, and nobody was told')
  writing.resolve()
  t.match(await canceled, { status: 200, json: { status: 'canceled' } })
  t.match(await job(id), { status: 'canceled' })
})
