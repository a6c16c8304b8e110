import t, { type Test } from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'

type World = Awaited<ReturnType<typeof buildGateway>>

const KINDS: Record<string, (t: Test, options: BuildOptions) => Promise<World>> = {
  'a journal': buildJournaled,
  'records of what is parked': buildGateway,
}

/** A session whose turn is over, and that is parked for what it asked for in it. */
async function parkedBetweenTurns({ engine, registry }: World, executionId?: string) {
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const { host } = engine.last
  void host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  if (executionId !== undefined) await host.deferExecution({ executionId, toolName: 'elsewhere' })
  engine.last.complete()
  await until(() => registry.here(id)?.status === 'parked', 'a parked session')
  const [request] = (await registry.get(id))!.parked!.permissions!
  return { id, requestId: request!.id }
}

for (const [kind, build] of Object.entries(KINDS)) {
  t.test(`a session that waited outside of a turn goes on with the next message: ${kind}`, async (t) => {
    const world = await build(t, { script: native })
    const { registry, engine } = world
    const { id, requestId } = await parkedBetweenTurns(world)
    await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
    await until(() => engine.runners.length === 2 && registry.here(id)?.status !== 'parked')
    t.equal(registry.here(id)?.status, 'idle')
    await registry.send(id, { type: 'user_message', text: 'more' })
    await until(() => engine.last.sent.length === 1, 'its turn')
    engine.last.complete()
    await until(() => registry.here(id)?.status === 'idle')
  })

  t.test(`what came in is told before the turn of a message that came as its engine started: ${kind}`, async (t) => {
    const started = deferred<void>()
    const start = async (runner: (typeof engine)['last']) => {
      if (runner.context.restore) await started.promise
      runner.init()
    }
    const world = await build(t, { script: { ...native, start } })
    const { registry, engine, gateway } = world
    const { id, requestId } = await parkedBetweenTurns(world, 'e1')
    const submitted = gateway.executions.submit('e1', ok)
    await until(() => engine.runners.length === 2 && registry.here(id)?.status !== 'parked')
    const { last } = engine
    await registry.send(id, { type: 'user_message', text: 'more' })
    t.same(last.sent, [], 'an engine that starts takes none yet')
    started.resolve()
    await submitted
    await until(() => last.sent.length === 1, 'its turn')
    t.match(last.settled, [{ executionId: 'e1', result: ok }])
    await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
    last.complete()
    await until(() => registry.here(id)?.status === 'idle')
    const events = await eventsOf(world, id)
    t.match(
      events.flatMap(({ type, seq }) => (type.startsWith('execution_') ? [{ type, seq }] : [])),
      [{ type: 'execution_dispatched' }, { type: 'execution_result' }],
    )
  })
}

/** Two gateways, the second one on what the first one left as it was killed. */
const NEXT: Record<string, (t: Test) => Promise<{ before: World; again: () => Promise<World> }>> = {
  'a journal': async (t) => {
    const { again, ...before } = await buildJournaled(t, { script: native })
    return { before, again }
  },
  'records of what is parked': async (t) => {
    const options = { parking: { store: new MemorySessionStore() }, script: native }
    return { before: await buildGateway(t, options), again: () => buildGateway(t, options) }
  },
}

for (const [kind, build] of Object.entries(NEXT)) {
  t.test(`what was taken outside of a turn is brought to no later engine: ${kind}`, async (t) => {
    const { before, again } = await build(t)
    const { registry, engine, gateway } = before
    const { id, requestId } = await parkedBetweenTurns(before, 'e1')
    await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
    await until(() => engine.runners.length === 2 && registry.here(id)?.status !== 'parked')
    const asked = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    t.match(await asked, { behavior: 'allow' })
    await gateway.executions.submit('e1', ok)
    t.match(engine.last.settled, [{ executionId: 'e1' }])
    const session = await registry.open(id, UNLIMITED)
    await until(() => session.midTurn === undefined, 'that nothing waits any more')
    await session.durable()
    const next = await again()
    t.equal(next.engine.runners.length, 0, 'no engine by itself')
    t.equal(next.registry.here(id)?.status === 'parked', false)
  })
}

t.test(
  'what came in outside of a turn is told after a crash, too, when no engine could hear of it before',
  async (t) => {
    let isBroken = false
    const start = async (runner: World['engine']['last']) => {
      if (isBroken && runner.context.restore) throw new Error('not now')
      runner.init()
    }
    const world = await buildJournaled(t, { script: { ...native, start } })
    const { id, requestId } = await parkedBetweenTurns(world, 'e1')
    isBroken = true
    await world.registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
    t.match(await world.gateway.executions.submit('e1', ok), { applied: true })
    await until(() => world.registry.here(id)?.statusDetail !== undefined, 'that its engine did not start')
    await world.registry.durable(id)
    isBroken = false
    const next = await world.again()
    await until(() => next.engine.runners.length === 1, 'an engine that goes on')
    await until(() => next.engine.last.settled.length === 1, 'the result')
    const events = await eventsOf(next, id)
    t.match(
      events.flatMap(({ type }) => (/^(permission|execution)_/.test(type) ? [type] : [])),
      ['permission_requested', 'execution_dispatched', 'permission_resolved', 'execution_result'],
    )
  },
)

t.test('a record of it says after a restart, too, that its turn was over', async (t) => {
  const options = { parking: { store: new MemorySessionStore() }, script: native }
  const before = await buildGateway(t, options)
  const { id, requestId } = await parkedBetweenTurns(before)
  await before.gateway.close()
  const { registry, engine } = await buildGateway(t, options)
  await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await until(() => registry.here(id)?.status === 'idle', 'no turn that goes on')
  await registry.send(id, { type: 'user_message', text: 'more' })
  await until(() => engine.last.sent.length === 1, 'its turn')
})

t.test('a session whose message waits for what the engine is to say first is not parked', async (t) => {
  const world = await buildGateway(t, { script: { ...native, start: () => {} }, requireApiKey: true })
  const { registry, engine } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => registry.here(id)?.status !== 'starting', 'an engine that takes input')
  const asked = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => registry.here(id)?.pendingPermissions === 1)
  const session = await registry.open(id, UNLIMITED)
  t.equal(session.leaveDesk.canPark, false)
  engine.last.init()
  await until(() => engine.last.sent.length === 1, 'its turn')
  await until(() => registry.here(id)?.status === 'parked', 'a park in its turn')
  void asked
})
