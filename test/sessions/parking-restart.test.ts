import t from 'tap'
import type { CreateSessionRequest } from '../../schemas/sessions.js'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked, native, ok } from '../fixtures/parked.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('after a restart what was parked is adopted under its id, and goes on', async (t) => {
  const store = new MemorySessionStore()
  const clock = new VirtualClock()
  const before = await buildParked(t, { parking: { store }, clock })
  await before.park('e1', clock.now() + 1_000)
  const { lastSeq } = (await before.registry.get(before.id))!
  await before.gateway.close()
  await clock.advance(5_000)
  const after = await buildGateway(t, { parking: { store }, clock, script: native })
  t.match(await after.registry.list(), [{ id: before.id, status: 'parked', lastSeq }])
  await clock.advance(59_999)
  t.equal(
    (await after.registry.get(before.id))?.status,
    'parked',
    'a deadline that lapsed while nobody was there gets its grace',
  )
  t.same(await after.gateway.executions.submit('e1', ok), { applied: true, sessionId: before.id })
  t.match(await after.registry.get(before.id), { status: 'running' })
  t.ok((await after.registry.get(before.id))!.lastSeq > lastSeq)
  await after.gateway.close()
  const third = await buildGateway(t, { parking: { store }, clock, script: native })
  await until(async () => (await third.registry.get(before.id))?.status === 'running')
  t.same(third.engine.last.settled.length, 1, 'what no checkpoint confirmed is delivered again')
})

t.test('at shutdown a session that waits is parked, whoever is attached', async (t) => {
  const { registry, engine, gateway, id, store } = await buildParked(t)
  ;(await registry.open(id, UNLIMITED)).attach(new FakeSink(), {})
  await engine.last.defer('e1')
  await gateway.close()
  t.match(await store.get(id), { id, executions: [{ executionId: 'e1' }] })
})

t.test('at shutdown a request without a limit is kept although the model has not ended its message', async (t) => {
  for (const ends of ['in time', 'too late']) {
    const { engine, gateway, clock, id, store } = await buildParked(t, { request: { approvalTimeoutMs: 0 } })
    const runner = Object.assign(engine.last, { canPark: false })
    const decided = runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't1', input: {} })
    const timers = clock.pendingTimers
    const closed = gateway.close()
    // that of the shutdown itself, that of all engines, and that of the grace
    await until(() => clock.pendingTimers === timers + 3)
    if (ends === 'too late') {
      await clock.advance(2_000)
      t.match(await decided, { behavior: 'deny' })
    } else {
      runner.canPark = true
      runner.host.waitForExecutions()
    }
    await closed
    const kept = await store.get(id)
    if (ends === 'in time') t.match(kept, { permissions: [{ toolUseId: 't1' }] })
    else t.equal(kept, undefined, 'nobody waits for it longer')
  }
})

for (const begins of ['before', 'with'])
  t.test(`a park that begins ${begins} the shutdown is kept although its engine takes longer than that`, async (t) => {
    const never = new Promise<void>(() => {})
    const world = await buildParked(t, { script: { close: () => never }, shutdownTimeoutMs: 1_000 })
    const { registry, engine, gateway, clock, id, store } = world
    if (begins === 'with') (await registry.open(id, UNLIMITED)).attach(new FakeSink(), {})
    await engine.last.defer('e1')
    if (begins === 'before') await until(() => engine.last.closed, 'an engine that is closed')
    t.equal(await store.get(id), undefined)
    const closed = gateway.close()
    await until(() => engine.last.closed, 'an engine that is closed')
    await clock.advance(1_000)
    await closed
    t.match(await store.get(id), { id, executions: [{ executionId: 'e1' }] })
  })

t.test('a session never wakes as someone else', async (t) => {
  const store = new MemorySessionStore()
  const profile = (baseUrl: string) => [
    { name: 'p', engine: 'provider' as const, provider: { id: 'openai-compatible', baseUrl } },
  ]
  const before = await buildParked(t, { parking: { store }, profiles: profile('http://one.example') })
  await before.park()
  await before.gateway.close()
  const after = await buildGateway(t, { parking: { store }, profiles: profile('http://two.example'), script: native })
  await after.gateway.executions.submit('e1', ok)
  await until(async () => (await after.registry.get(before.id))?.status === 'failed')
  t.match((await after.registry.get(before.id))?.statusDetail, /someone else/)
  t.same(after.engine.runners, [])
})

t.test('bypass that was disabled meanwhile is refused at the wake', async (t) => {
  const store = new MemorySessionStore()
  const before = await buildParked(t, { parking: { store }, request: { permissionMode: 'bypassPermissions' } })
  await before.park()
  await before.gateway.close()
  const after = await buildGateway(t, { parking: { store }, disableBypassPermissions: true, script: native })
  await after.gateway.executions.submit('e1', ok)
  await until(async () => (await after.registry.get(before.id))?.status === 'failed')
  t.same(after.engine.runners, [])
})

t.test('neither env nor agentOptions are written to the store, and the host gives them again', async (t) => {
  const buildRunnerConfig = (request: CreateSessionRequest) => ({
    ...request,
    env: { TOKEN: 'canary' },
    agentOptions: { a: 1 },
  })
  const { engine, executions, id, park, store } = await buildParked(t, { buildRunnerConfig })
  await park()
  t.notMatch(JSON.stringify(await store.get(id)), /canary|agentOptions/)
  await executions.submit('e1', ok)
  t.match(engine.last.context.config, { env: { TOKEN: 'canary' } })
})
