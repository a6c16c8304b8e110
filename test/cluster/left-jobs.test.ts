import t, { type Test } from 'tap'
import { providerEngine } from '../../src/engines/provider/index.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** Deferred, so that the job is parked. */
const CALL = { tools: [{ tool: 'lookup', input: {} }] }
const RESULT = { status: 'ok', output: { type: 'text', value: 'found' } }

/** A node without a queue has the session of a parked job; the node that ran it is gone, and no other one goes on with it. */
async function leftJob(t: Test) {
  const lookup = { name: 'lookup', description: 'Looks something up.', inputSchema: { type: 'object' } }
  const engine = {
    leaseMs: 3_000,
    profiles: [{ name: 'demo', engine: 'provider' as const, provider: { id: 'demo' } }],
    createEngineRunner: providerEngine({ demoChunkDelayMs: 0, deferredTools: [lookup] }),
  }
  const { join } = await clusterOf(t, [], engine)
  const a = await join('a', { queue: {} })
  const prompt = `@@${JSON.stringify([CALL, { text: 'it is deployed' }])}@@`
  const { id } = (await a.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, attempts: 2 })).json
  const read = async (node = a) => (await node.call('GET', `/jobs/${id}`)).json
  await until(async () => (await read()).status === 'parked', 'parked')
  const parked = await read()
  const b = await join('b')
  a.cutOff()
  await until(async () => (await b.storage.cluster!.placeOfSession(parked.sessionId))?.owner?.name === 'b', 'taken')
  return { id, parked, b, join, read }
}

/** A node without a queue has the session of a running job; the node that ran it is gone. */
async function leftWithoutQueue(t: Test, asked: { attempts?: number } = {}) {
  const { join } = await clusterOf(t, [], { leaseMs: 3_000 })
  const a = await join('a', { queue: {} })
  const { id } = (await a.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'on' }, ...asked })).json
  const read = async (node: TestNode) => (await node.call('GET', `/jobs/${id}`)).json
  await until(async () => (await read(a)).sessionId, 'its session')
  const { sessionId } = await read(a)
  const b = await join('b')
  a.cutOff()
  await until(async () => (await b.storage.cluster!.placeOfSession(sessionId))?.owner?.name === 'b', 'taken')
  return { join, b, sessionId, read }
}

if (hasPostgres()) {
  t.test('a parked job whose session a node without a queue has is canceled, with that session', async (t: Test) => {
    const { id, parked, b, join, read } = await leftJob(t)
    const told: string[] = []
    const c = await join('c', { queue: { onEvent: ({ type }) => told.push(type) } })
    t.match(await read(c), { status: 'parked' })
    t.match(await c.call('DELETE', `/jobs/${id}`), { status: 200, json: { status: 'canceled', attempt: 1 } })
    for (const node of [b, c]) t.match(await node.call('GET', `/sessions/${parked.sessionId}`), { status: 404 })
    t.match(await b.call('POST', `/executions/${parked.parkedExecutionId}/result`, RESULT), { status: 404 })
    await b.stop()
    t.match(await c.call('DELETE', `/jobs/${id}`), { status: 200, json: { status: 'canceled' } })
    t.same(told, ['job_completed'])
    t.match((await c.call('GET', '/queue')).json, { parked: 0, running: 0, queued: 0 })
  })

  t.test(
    'and one whose session was removed there is canceled at any node, or once that node has left',
    async (t: Test) => {
      for (const isCanceled of [true, false]) {
        const { id, parked, b, join, read } = await leftJob(t)
        const told: string[] = []
        const c = await join('c', { queue: { onEvent: ({ type }) => told.push(type) } })
        t.match(await b.call('DELETE', `/sessions/${parked.sessionId}`), { status: 200 })
        t.match(await read(c), { status: 'parked' })
        if (isCanceled) t.match(await c.call('DELETE', `/jobs/${id}`), { status: 200, json: { status: 'canceled' } })
        else await b.stop()
        await until(async () => (await read(c)).status === 'canceled', 'canceled')
        t.match(await read(c), { attempt: 1, sessionId: parked.sessionId })
        t.same(told, ['job_completed'])
      }
    },
  )

  for (const isRemoved of [true, false])
    t.test(
      `a job that ran is ${isRemoved ? 'canceled' : 'cut off'} at the next node with a queue, when a node without one has ${isRemoved ? 'removed' : 'taken'} its session`,
      async (t: Test) => {
        const { join, b, sessionId, read } = await leftWithoutQueue(t)
        if (isRemoved) t.match(await b.call('DELETE', `/sessions/${sessionId}`), { status: 200 })
        const c = await join('c', { queue: {} })
        await until(async () => (await read(c)).finishedAt || c.engine.runners.length > 0, 'the end of the job')
        t.match(await read(c), { status: isRemoved ? 'canceled' : 'failed', attempt: 1, sessionId })
        t.same(c.engine.runners, [], 'it has had its one attempt')
      },
    )

  t.test(
    'a job that ran is canceled there, too, while the removal of its session is not carried out yet',
    async (t: Test) => {
      const { join, b, sessionId, read } = await leftWithoutQueue(t, { attempts: 2 })
      const journal = b.storage.journal!
      const { remove } = journal
      let goOn = () => {}
      const held = new Promise<void>((resolve) => {
        goOn = resolve
      })
      journal.remove = async (...args) => {
        await held
        return remove.apply(journal, args)
      }
      t.match(await b.call('DELETE', `/sessions/${sessionId}`), { status: 200 })
      const c = await join('c', { queue: {} })
      t.equal(await c.worker.registry.get(sessionId), undefined, 'to a host, too')
      await until(async () => (await read(c)).finishedAt || c.engine.runners.length > 0, 'the end of the job')
      t.match(await read(c), { status: 'canceled', attempt: 1, sessionId })
      goOn()
    },
  )

  t.test('and when its session is removed there just while it is taken up', async (t: Test) => {
    const { join, b, sessionId, read } = await leftWithoutQueue(t)
    let hasRemoved = false
    const c = await join('c', {
      queue: {},
      cli: (_name, storage) => {
        const { owned } = storage.queue!
        storage.queue!.owned = async function* (...args) {
          yield* owned!.apply(this, args)
          if (hasRemoved) return
          hasRemoved = true
          t.match(await b.call('DELETE', `/sessions/${sessionId}`), { status: 200 })
        }
        return undefined as never
      },
    })
    await until(async () => (await read(c)).finishedAt, 'the end of the job')
    t.ok(hasRemoved)
    t.match(await read(c), { status: 'canceled', attempt: 1, sessionId })
  })

  for (const isAnswered of [false, true])
    t.test(
      `a parked job whose session a node without a queue took is over as its turn is, once that node has left, answered ${isAnswered ? 'before' : 'after'} there is one with a queue`,
      async (t: Test) => {
        const { parked, b, join, read } = await leftJob(t)
        const answer = (at: TestNode) => at.call('POST', `/executions/${parked.parkedExecutionId}/result`, RESULT)
        const sessionAt = async (node: TestNode) => (await node.call('GET', `/sessions/${parked.sessionId}`)).json
        if (isAnswered) {
          t.match(await answer(b), { status: 200 })
          await until(async () => (await sessionAt(b)).status === 'idle', 'the end of its turn')
        }
        const c = await join('c', { queue: {} })
        t.match(
          await read(c),
          { status: 'parked', sessionId: parked.sessionId },
          'its session is still at the other node',
        )
        if (!isAnswered) t.match(await answer(c), { status: 200 })
        await until(async () => (await sessionAt(c)).status === 'idle', 'the end of its turn')
        await b.stop()
        await until(async () => (await read(c)).status !== 'parked', 'the end of the job')
        await until(async () => (await read(c)).status !== 'running', 'the end of the job')
        t.match(await read(c), { status: 'succeeded', attempt: 1, result: { text: /it is deployed/ } })
      },
    )
}
