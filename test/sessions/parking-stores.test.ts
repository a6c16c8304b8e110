import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import type { ParkedSessionRecord } from '../../src/sessions/kept/store.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked, native, ok, SlowStore, someRecord } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

t.test('what a store of the host has that is no parked session keeps no other one from being adopted', async (t) => {
  const { gateway, id, park, store } = await buildParked(t)
  await park()
  await gateway.close()
  const kept = (await store.get(id))!
  const failures: unknown[] = []
  const onError = (error: Error, context: unknown) => void failures.push([error.message, context])
  const list = async () => [null, {}, kept] as ParkedSessionRecord[]
  let answer: unknown = kept
  const mixed = Object.assign(Object.create(store), { list, get: async () => answer }) as MemorySessionStore
  const { registry } = await buildGateway(t, { parking: { store: mixed, onError }, script: native })
  t.same(
    (await registry.list()).map((session) => session.id),
    [id],
  )
  t.match(failures, [
    [/^parking\.store gave something else than a parked session .* It was left in place\.$/, { phase: 'adopt' }],
    [/record\.id: /, { phase: 'adopt' }],
  ])
  answer = 42
  await t.rejects(registry.send(id, { type: 'interrupt' }), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  answer = kept
  t.equal((await registry.get(id))?.status, 'parked')
})

t.test('a record whose log is damaged keeps no other one from being adopted', async (t) => {
  const logs = ['{"seq":1}\n{"se', 'null', '{"seq":"1"}', '[]']
  const store = new MemorySessionStore()
  await store.save(someRecord('sound'))
  const log = (events: string) => ({ epoch: 'epoch', oldestSeq: 1, events })
  for (const [index, events] of logs.entries()) await store.save(someRecord(`damaged-${index}`, { log: log(events) }))
  const failures: unknown[] = []
  const onError = ({ message }: Error, context: object) => void failures.push([message, context])
  const { registry } = await buildGateway(t, { parking: { store, onError }, script: native })
  t.same(
    (await registry.list()).map(({ id }) => id),
    ['sound'],
  )
  t.match(
    failures,
    logs.map((_, index) => [
      new RegExp(`record\\.log\\.events of session damaged-${index} does not end with an event: .*left in place\\.$`),
      { phase: 'adopt' },
    ]),
  )
  t.equal((await store.get('damaged-0'))?.log.events, logs[0])
})

t.test('a record that lacks what is shown of a session keeps no other one from being listed', async (t) => {
  const store = new MemorySessionStore()
  await store.save(someRecord('sound'))
  const { usage: _, ...info } = someRecord('half').info
  await store.save(someRecord('half', { info: info as ParkedSessionRecord['info'] }))
  const { input: __, ...asked } = { id: 'r1', toolName: 'Bash', toolUseId: 'u1', input: {} }
  await store.save(someRecord('asking', { permissions: [asked as ParkedSessionRecord['permissions'][number]] }))
  const failures: string[] = []
  const onError = ({ message }: Error) => void failures.push(message)
  const { registry } = await buildGateway(t, { parking: { store, onError }, script: native })
  t.same(
    (await registry.list()).map(({ id }) => id),
    ['sound'],
  )
  t.match(failures.toSorted(), [/record\.info\.usage: Required/, /record\.permissions\.0\.input: Required/])
})

t.test('a store of the host that lists nothing is named when the gateway starts', async (t) => {
  const store = Object.assign(new MemorySessionStore(), { list: async () => undefined as never })
  await t.rejects(buildGateway(t, { parking: { store } }), { message: 'parking.store: list() gave no list.' })
})

t.test('a store of the host that cannot be read is named when the gateway starts', async (t) => {
  const unreachable = { message: 'connect ECONNREFUSED 127.0.0.1:6379' }
  for (const thrown of [new Error(unreachable.message), unreachable]) {
    const store = Object.assign(new MemorySessionStore(), { list: () => Promise.reject(thrown) })
    const named = { code: 'SG_ERR_OPTION', message: `parking.store: ${unreachable.message}`, cause: thrown }
    await t.rejects(buildGateway(t, { parking: { store } }), named)
  }
})

t.test('the stores are not writable while a park that was refused is to be tried again', async (t) => {
  const store = new SlowStore()
  const start: Script['start'] = (runner) => {
    runner.init()
    if (runner.context.restore) setImmediate(() => runner.host.waitForExecutions())
  }
  const { registry, engine, id, clock } = await buildParked(t, { parking: { store }, script: { start } })
  t.equal(registry.isWritable, true)
  store.broken = true
  await engine.last.defer('e1')
  await until(() => engine.runners.length === 2)
  t.equal(registry.isWritable, false)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  t.equal(registry.isWritable, true, 'nothing is to be written while somebody is there')
  session.detach(attachment)
  await clock.advance(1_000)
  await until(() => !registry.isWritable)
  store.broken = false
  await clock.advance(2_000)
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.equal(registry.isWritable, true)
})

t.test('what a store refused is no fault of it any more once nobody waits for that', async (t) => {
  const store = new SlowStore()
  const { registry, engine, executions, id } = await buildParked(t, { parking: { store } })
  store.broken = true
  await engine.last.defer('e1')
  await until(() => !registry.isWritable)
  store.broken = false
  t.match(await executions.submit('e1', ok), { applied: true })
  engine.last.complete()
  await registry.send(id, { type: 'user_message', text: 'next' })
  await until(() => engine.last.sent.length === 1)
  // with a time limit: its session is not to be parked
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await until(async () => (await registry.get(id))?.status === 'awaiting_approval')
  t.ok(registry.isWritable)
})

t.test('no engine is built at the end of the process for a session that its store refuses', async (t) => {
  const store = new SlowStore()
  const { gateway, registry, engine, id } = await buildParked(t, { parking: { store } })
  const session = await registry.open(id, UNLIMITED)
  session.attach(new FakeSink(), {})
  await engine.last.defer('e1')
  store.broken = true
  await gateway.close()
  t.equal(engine.runners.length, 1)
  t.ok(engine.last.closed)
  t.equal(session.status, 'closed')
})

t.test('a store that refuses the park: the session goes on with a new engine and is parked later', async (t) => {
  const store = new SlowStore()
  const errors: string[] = []
  const onError = async (_error: Error, { phase }: { phase: string }) => {
    errors.push(phase)
    throw new Error('nobody is there to be told, and the process lives on')
  }
  // as an engine does that finds its turn waiting when it is built again
  const start: Script['start'] = (runner) => {
    runner.init()
    if (runner.context.restore) setImmediate(() => runner.host.waitForExecutions())
  }
  const { registry, engine, id, clock } = await buildParked(t, { parking: { store, onError }, script: { start } })
  store.broken = true
  await engine.last.defer('e1')
  await until(() => engine.runners.length === 2)
  t.equal((await registry.get(id))?.status, 'running')
  await clock.advance(999)
  t.same(errors, ['park'], 'it is not tried all the time')
  await clock.advance(1)
  await until(() => engine.runners.length === 3)
  t.same(errors, ['park', 'park'])
  store.broken = false
  await clock.advance(2_000)
  await until(async () => (await registry.get(id))?.status === 'parked')
})

t.test('a store that refuses a result: nothing was applied, and the next try is', async (t) => {
  const store = new SlowStore()
  const { executions, id, park } = await buildParked(t, { parking: { store } })
  await park()
  store.broken = true
  await t.rejects(executions.submit('e1', ok), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  store.broken = false
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
})
