import t from 'tap'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildSession } from '../fixtures/session-world.js'

t.test('an engine that dies with many words has them in its log, and the first of them in every list', async (t) => {
  const world = await buildSession(t)
  const message = `${'x'.repeat(999)}🥊${'y'.repeat(5_000_000)}`
  world.runner.host.emit({ type: 'session_error', message })
  t.match((await world.registry.list())[0], { status: 'failed', statusDetail: 'x'.repeat(999) })
  const events = await world.events()
  t.equal(events.find((event) => event.type === 'session_error')?.message, message)
})

t.test('an engine that fails ends its session alone, and says why', async (t) => {
  const world = await buildSession(t)
  const other = await world.registry.create({ cwd: SOME_CWD })
  world.runner.host.emit({ type: 'session_error', message: 'the process died' })
  t.match(world.session.info(), { status: 'failed', statusDetail: 'the process died' })
  t.same((await world.types()).slice(-3), ['session_error', 'status_changed', 'session_closed'])
  t.match((await world.events()).at(-1), { reason: 'error' })
  await until(async () => (await world.registry.get(other.id))?.status === 'idle')
  world.runner.say('from beyond')
  t.equal((await world.types()).at(-1), 'session_closed')
})

t.test('a session whose engine starts at once is answered as started', async (t) => {
  const { registry } = await buildGateway(t)
  t.match(await registry.create({ cwd: SOME_CWD }), { status: 'idle', lastSeq: 2 })
  t.match(await registry.create({ cwd: SOME_CWD, prompt: 'x' }), { status: 'running', lastSeq: 3 })
})

t.test('a runner whose start fails is 201, then session_error and failed', async (t) => {
  const world = await buildGateway(t, { script: { start: () => Promise.reject(new Error('no such binary')) } })
  const { id, status } = await world.registry.create({ cwd: SOME_CWD })
  t.equal(status, 'starting')
  await until(async () => (await world.registry.get(id))?.status === 'failed')
  t.match(await world.registry.get(id), { statusDetail: 'no such binary' })
})

t.test('a hook that throws what cannot be asked what it is has not started the engine', async (t) => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const hook = () => {
    throw proxy
  }
  for (const options of [{ buildRunnerConfig: hook }, { createEngineRunner: hook }]) {
    const { registry } = await buildGateway(t, options)
    await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_ENGINE_START' })
    t.same(await registry.list(), [])
  }
})

t.test(
  'an engine that throws what cannot be asked what it is where it is asked for something has refused',
  async (t) => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const { registry, runner, id } = await buildSession(t, {}, {})
    const refuse = () => Promise.reject(proxy)
    Object.assign(runner, { interrupt: refuse, setModel: refuse })
    await registry.send(id, { type: 'user_message', text: 'go' })
    for (const command of [{ type: 'interrupt' }, { type: 'set_model', model: 'other' }] as const)
      await t.rejects(registry.send(id, command), { code: 'SG_ERR_ENGINE_REFUSED' }, command.type)
  },
)

t.test('a runner that throws from send fails its session, and one whose send is async and rejects', async (t) => {
  const send = () => {
    throw new Error('broken pipe')
  }
  for (const one of [send, async () => send()]) {
    const world = await buildGateway(t, { script: { send: one } })
    const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'x' })
    await until(async () => (await world.registry.get(id))?.status === 'failed')
    t.match(await world.registry.get(id), { statusDetail: 'broken pipe' })
  }
})

t.test('an engine that takes a result asynchronously, and fails at it, fails its session alone', async (t) => {
  const { session, runner } = await buildSession(t)
  runner.settleExecution = (async () => {
    throw new Error('broken pipe')
  }) as never
  await runner.host.deferExecution({ executionId: 'e1', toolName: 'deploy' })
  session.engine.settle('e1', { status: 'ok', output: { type: 'text', value: 'done' } })
  await until(() => session.info().status === 'failed')
  t.match(session.info(), { statusDetail: 'broken pipe' })
})

t.test("an event that is no JSON, or not an engine's to tell, harms nobody else", async (t) => {
  const { session, runner, types } = await buildSession(t)
  const before = await types()
  runner.host.emit({ type: 'status_changed', status: 'closed' } as never)
  runner.host.emit(null as never)
  t.same(await types(), before)
  const circular: Record<string, unknown> = {}
  circular.self = circular
  runner.host.emit({ type: 'engine_event', payload: circular })
  t.match(session.info(), { status: 'failed', statusDetail: /cannot be taken: It is not JSON: .*circular/ })
})

t.test('an engine that does not close is left behind', async (t) => {
  const { session, clock } = await buildSession(t, {}, { script: { close: () => new Promise(() => {}) } })
  let ended = false
  void session.close('client').then(() => {
    ended = true
  })
  await clock.advance(10_000)
  await until(() => ended)
})

t.test('an engine that cannot say of itself what it is asked ends neither its session nor the process', async (t) => {
  const facts = ['snapshot', 'canPark', 'canRelease', 'isSpent', 'files']
  for (const fact of facts) {
    const world = await buildSession(
      t,
      {},
      {
        idleReleaseMs: 60_000,
        script: {
          capabilities: { parking: 'native' },
          start(runner) {
            runner.init()
            Object.defineProperty(runner, fact, {
              get() {
                throw new Error(`${fact}: not connected`)
              },
            })
          },
        },
      },
    )
    const { session, runner, clock, registry, id } = world
    await registry.send(id, { type: 'user_message', text: 'go' })
    runner.complete()
    await until(() => session.info().status === 'idle', fact)
    await registry.send(id, { type: 'user_message', text: 'again' })
    runner.host.requestPermission({ toolName: 'deploy', toolUseId: 'u', input: {} }).catch(() => {})
    await until(() => session.info().status === 'awaiting_approval', fact)
    await clock.advance(60_000)
    t.match(await registry.close(id), { status: 'closed' }, fact)
  }
})
