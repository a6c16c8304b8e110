import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

const endsOf = (events: Awaited<ReturnType<typeof eventsOf>>) =>
  events.filter(({ type }) => type === 'execution_result' || type === 'execution_failed')

t.test('a result that is being written down as the gateway is shut down is told once', async (t) => {
  const { registry, engine, journal, gateway, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await registry.durable(id)
  journal.hold()
  const submitted = gateway.executions.submit('e1', ok)
  const closed = gateway.close()
  await until(() => engine.last.closed)
  journal.release()
  t.match(await submitted, { applied: true })
  await closed
  const next = await again()
  t.match(endsOf(await eventsOf(next, id)), [{ type: 'execution_result', executionId: 'e1' }])
  t.same(await next.gateway.executions.submit('e1', ok), { applied: false, sessionId: id })
})

t.test('what an engine waits for that is ended for another one fails with it', async (t) => {
  const world = await buildGateway(t)
  const { registry, engine, gateway } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  const runner = engine.last
  await until(() => runner.sent.length === 1)
  await runner.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  const decision = runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => registry.here(id)?.status === 'awaiting_approval')
  Object.assign(runner, { isSpent: true })
  runner.complete({ subtype: 'error_during_execution', isError: true })
  t.match(await decision, { behavior: 'deny' })
  t.equal((await registry.get(id))?.status, 'idle')
  const session = await registry.open(id, UNLIMITED)
  t.same([session.snapshot().pendingExecutions, session.snapshot().pendingPermissions], [[], []])
  t.same(await gateway.executions.submit('e1', ok), { applied: false, sessionId: id })
  t.match(endsOf(await eventsOf(world, id)), [{ type: 'execution_failed', executionId: 'e1' }])
})

t.test('a result that came in is told also by an engine that ends the turn as it starts again', async (t) => {
  let isBroken = false
  const start: Script['start'] = async (runner) => {
    runner.init()
    if (!runner.context.restore) return
    if (isBroken) throw new Error('not now')
    const asked = { toolName: 'Write', toolUseId: 't', input: {} }
    if ((await runner.host.requestPermission(asked)).behavior === 'deny') runner.complete({ subtype: 'interrupted' })
  }
  const world = await buildJournaled(t, { script: { ...native, start } })
  const { registry, engine, clock } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await engine.last.defer('e1')
  await until(() => registry.here(id)?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  isBroken = true
  const deny = { behavior: 'deny', interrupt: true } as const
  await registry.resolvePermission(id, request!.id, deny, UNLIMITED)
  await registry.send(id, { type: 'interrupt' })
  isBroken = false
  await clock.advance(60_000)
  await until(() => registry.here(id)?.status === 'idle')
  const events = await eventsOf(world, id)
  t.match(endsOf(events), [{ type: 'execution_failed', executionId: 'e1', reason: 'interrupted' }])
  t.equal(events.filter(({ type }) => type === 'permission_resolved').length, 1)
})

t.test('a turn after one that waited outside of it is cut off by a crash as any other', async (t) => {
  const { registry, engine, again } = await buildJournaled(t, { script: native })
  const { id } = await registry.create({ cwd: SOME_CWD, approvalTimeoutMs: 0 })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => registry.here(id)?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  await until(() => engine.runners.length === 2 && registry.here(id)?.status === 'idle')
  await registry.send(id, { type: 'user_message', text: 'go' })
  await until(() => engine.last.sent.length === 1)
  const next = await again()
  await until(async () => (await next.registry.get(id))?.status === 'idle')
  const events = await eventsOf(next, id)
  t.match(
    events.filter(({ type }) => type === 'turn_completed'),
    [{ subtype: 'interrupted', isError: true }],
  )
})

t.test(
  'an execution that a woken turn deferred before a crash has failed: the next engine does not know of it',
  async (t) => {
    const { registry, engine, gateway, again } = await buildJournaled(t, { script: native })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await engine.last.defer('e1')
    await until(() => registry.here(id)?.status === 'parked')
    await gateway.executions.submit('e1', ok)
    await until(() => engine.last.settled.length === 1)
    await engine.last.host.deferExecution({ executionId: 'e2', toolName: 'elsewhere' })
    const next = await again()
    await until(() => next.engine.runners.length === 1 && next.engine.last.settled.length === 1, 'the turn goes on')
    const told = endsOf(await eventsOf(next, id))
    t.match(told, [{ executionId: 'e1' }, { type: 'execution_failed', executionId: 'e2', reason: 'interrupted' }])
    await next.engine.last.defer('e2')
    t.match(await next.gateway.executions.submit('e2', ok), { applied: true }, 'an engine may defer the same again')
  },
)

t.test(
  'an answer to what was asked outside of a turn outlives a restart before an engine could be given it',
  async (t) => {
    let isBroken = true
    const decided: unknown[] = []
    const start: Script['start'] = async (runner) => {
      if (runner.context.restore && isBroken) throw new Error('not now')
      runner.init()
      if (!runner.context.restore) return
      decided.push(await runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} }))
    }
    const { registry, engine, again } = await buildJournaled(t, { script: { ...native, start } })
    const { id } = await registry.create({ cwd: SOME_CWD, approvalTimeoutMs: 0 })
    void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    await until(() => registry.here(id)?.status === 'parked')
    const [request] = (await registry.get(id))!.parked!.permissions!
    await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
    await registry.durable(id)
    isBroken = false
    const next = await again()
    await until(() => decided.length === 1, 'an engine that is told')
    t.match(decided, [{ behavior: 'allow' }])
    const events = await eventsOf(next, id)
    t.match(
      events.filter(({ type }) => type === 'permission_resolved'),
      [{ requestId: request!.id, behavior: 'allow' }],
    )
  },
)

for (const kept of ['a storage', 'a store of parked sessions'])
  t.test(
    `what an interrupt has denied is not shown as open, before an engine could tell it, with ${kept}`,
    async (t) => {
      let isBroken = false
      const start: Script['start'] = (runner) => {
        if (isBroken) throw new Error('not now')
        runner.init()
      }
      const options = { script: { ...native, start }, parking: { store: new MemorySessionStore() } }
      const buildAgain = () => buildGateway(t, options)
      const world =
        kept === 'a storage'
          ? await buildJournaled(t, { script: options.script })
          : { ...(await buildAgain()), again: buildAgain }
      const { registry, engine, gateway } = world
      const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
      await until(() => engine.last.sent.length === 1)
      void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
      await until(async () => (await registry.get(id))?.status === 'parked')
      const [request] = (await registry.get(id))!.parked!.permissions!
      isBroken = true
      await registry.send(id, { type: 'interrupt' })
      const isNotOpen = async (of: typeof registry) => {
        const { parked, ...info } = (await of.get(id))!
        t.match(info, { status: 'parked', pendingPermissions: 0 })
        t.match(parked, { permissions: undefined })
        t.equal(of.waitingRequest(id, request!.id), undefined)
        const sink = new FakeSink()
        const session = await of.open(id, UNLIMITED)
        const attachment = session.attach(sink, {})
        await until(() => sink.frames.length > 0)
        t.match(sink.frames[0], { type: 'attached', pendingPermissions: [] })
        session.detach(attachment)
      }
      await isNotOpen(registry)
      await gateway.close()
      const next = await world.again()
      await isNotOpen(next.registry)
      await next.gateway.close()
      isBroken = false
      const last = await world.again()
      await until(async () => (await last.registry.get(id))?.status === 'idle', 'the turn is over')
    },
  )
