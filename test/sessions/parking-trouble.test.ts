import t from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked, native, ok, SlowStore } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('what a client changes while the engine waits does not keep the session from being parked', async (t) => {
  const { registry, engine, id, clock } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  await engine.last.defer('e1')
  await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
  session.detach(attachment)
  await clock.advance(2_000)
  await until(async () => (await registry.get(id))?.status === 'parked')
})

t.test(
  'what an engine is asked while it waits it answers before it goes: what it refuses is no later engine’s',
  async (t) => {
    const store = new MemorySessionStore()
    const { gateway, registry, engine, id } = await buildParked(t, { parking: { store, parkDelayMs: 0 } })
    let refuse = (_why: Error) => {}
    engine.last.setPermissionMode = () => new Promise((_taken, reject) => (refuse = reject))
    const refused = registry.send(id, { type: 'set_permission_mode', mode: 'bypassPermissions' })
    const changed = registry.send(id, { type: 'set_model', model: 'other' })
    await engine.last.defer('e1')
    // more than enough for it to be parked
    await turns()
    refuse(new Error('not this one'))
    await t.rejects(refused, { code: 'SG_ERR_ENGINE_REFUSED' })
    await changed
    await until(async () => (await registry.get(id))?.status === 'parked')
    await gateway.close()

    const next = await buildGateway(t, { parking: { store }, script: native })
    t.match(await next.gateway.executions.submit('e1', ok), { applied: true })
    t.match(next.engine.last.context.config, { permissionMode: 'default', model: 'other' })
  },
)

t.test(
  'what an engine is asked when the gateway is shut down, and refuses as it goes, is no later engine’s',
  async (t) => {
    const store = new MemorySessionStore()
    let refuse: ((why: Error) => void) | undefined
    const script: Script = { close: () => refuse?.(new Error('it goes')) }
    const { gateway, registry, engine, id } = await buildParked(t, { parking: { store }, script })
    engine.last.setPermissionMode = () => new Promise((_taken, reject) => (refuse = reject))
    const session = await registry.open(id, UNLIMITED)
    session.attach(new FakeSink(), {})
    await engine.last.defer('e1')
    const command = { id: 'c1', type: 'set_permission_mode', mode: 'bypassPermissions' } as const
    const refused = registry.send(id, command)
    await until(() => refuse)
    await Promise.all([gateway.close(), t.rejects(refused, { code: 'SG_ERR_ENGINE_REFUSED' })])

    const next = await buildGateway(t, { parking: { store }, script: native })
    t.match(await next.gateway.executions.submit('e1', ok), { applied: true })
    t.match(next.engine.last.context.config, { permissionMode: 'default' })
    await next.registry.send(id, command)
    t.match(await next.registry.get(id), { permissionMode: 'bypassPermissions' }, 'asked again')
  },
)

t.test('an engine that goes on with a part of its results is not parked under its hands', async (t) => {
  const { registry, engine, executions, id, clock } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  await engine.last.host.deferExecution({ executionId: 'a', toolName: 'x' })
  await engine.last.host.deferExecution({ executionId: 'b', toolName: 'x' })
  engine.last.host.waitForExecutions()
  await executions.submit('a', ok)
  session.detach(attachment)
  await clock.advance(60_000)
  t.equal((await registry.get(id))?.status, 'running')
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked')
})

t.test('DELETE of a woken session leaves nothing that a restart could wake', async (t) => {
  const { registry, executions, id, park, store } = await buildParked(t)
  await park()
  await executions.submit('e1', ok)
  t.equal((await registry.get(id))?.status, 'running')
  await registry.close(id, 'client')
  t.equal(await store.get(id), undefined)
})

t.test('a woken session whose engine dies is not woken again by a restart', async (t) => {
  const { registry, engine, executions, id, park, store } = await buildParked(t)
  await park()
  await executions.submit('e1', ok)
  engine.last.host.emit({ type: 'session_error', message: 'gone' })
  t.equal((await registry.get(id))?.status, 'failed')
  await until(async () => (await store.get(id)) === undefined)
})

t.test('what came in for a session whose engine dies at its start is told with its end', async (t) => {
  const start: Script['start'] = (runner) => {
    runner.init()
    if (runner.context.restore) runner.host.emit({ type: 'session_error', message: 'gone' })
  }
  const request = { approvalTimeoutMs: 0 }
  const { registry, engine, executions, id, park, events } = await buildParked(t, { request, script: { start } })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await park()
  const [asked] = (await registry.get(id))!.parked!.permissions!
  // neither waits for the other
  const answered = registry.resolvePermission(id, asked!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await executions.submit('e1', ok), { applied: true })
  await answered
  t.equal((await registry.get(id))?.status, 'failed')
  const told = (await events()).filter(({ type }) => type === 'permission_resolved' || type.startsWith('execution_'))
  t.match(told, [
    { type: 'execution_dispatched', executionId: 'e1' },
    { type: 'permission_resolved', requestId: asked!.id, behavior: 'allow', resolvedBy: 'client' },
    { type: 'execution_result', executionId: 'e1' },
  ])
})

t.test('a checkpoint that the store refuses is made up for at the next one', async (t) => {
  const store = new SlowStore()
  const { engine, executions, id, park } = await buildParked(t, { parking: { store } })
  await park()
  await executions.submit('e1', ok)
  store.keepsAll = true
  engine.last.complete()
  await new Promise(setImmediate)
  t.ok(await store.get(id))
  store.keepsAll = false
  engine.last.complete()
  await until(async () => (await store.get(id)) === undefined)
})

t.test('DELETE that the store refuses: 503, and the session is still parked', async (t) => {
  const store = new SlowStore()
  const { registry, id, park } = await buildParked(t, { parking: { store } })
  await park()
  store.broken = true
  await t.rejects(registry.close(id), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  t.equal((await registry.get(id))?.status, 'parked')
  store.broken = false
  t.match(await registry.close(id), { status: 'closed' })
  t.same(await store.list(), [])
})

t.test(
  'DELETE that the store takes and is slow to carry out: it is done, by the next process at the latest',
  async (t) => {
    const store = new SlowStore()
    const { registry, id, park, clock, gateway } = await buildParked(t, { parking: { store } })
    await park()
    store.keepsAll = true
    const removal = registry.close(id)
    let isSaid = false
    void removal.then(() => (isSaid = true))
    await until(async () => isSaid || void (await clock.advance(1_000)), 'said')
    t.match(await removal, { status: 'closed' })
    t.equal(await registry.get(id), undefined)
    t.equal((await store.list()).length, 1)
    await gateway.close()
    store.keepsAll = false
    const { gateway: next } = await buildGateway(t, { parking: { store } })
    t.same(await next.registry.list(), [])
    t.same(await store.list(), [])
  },
)

t.test('a parked session takes no place of maxSessions, however its waiting ends', async (t) => {
  const { registry, engine, executions, id, park } = await buildParked(t, { maxSessions: 1 })
  await park()
  const other = await registry.create({ cwd: SOME_CWD })
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' })
  await registry.close(other.id)
  await executions.submit('e1', ok)
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' }, 'awake it counts again')
  await engine.last.defer('e2')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await Promise.all([executions.submit('e2', ok), registry.close(id)])
  await registry.create({ cwd: SOME_CWD })
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' })
})

t.test('the second of two results takes the place of a first one that could not be stored', async (t) => {
  const store = new SlowStore()
  const { executions, id, park, clock } = await buildParked(t, { parking: { store } })
  await park('e1', clock.now() + 60_000)
  store.broken = true
  const first = executions.submit('e1', ok)
  const second = executions.submit('e1', ok)
  await t.rejects(first, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await t.rejects(second, { code: 'SG_ERR_STORE_UNAVAILABLE' }, 'and is not told that it is a duplicate')
  store.broken = false
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
})

t.test('a result that could not be stored does not disarm the watchdog', async (t) => {
  const store = new SlowStore()
  const { engine, executions, park, clock } = await buildParked(t, { parking: { store } })
  await park('e1', clock.now() + 60_000)
  store.broken = true
  await t.rejects(executions.submit('e1', ok), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  store.broken = false
  await clock.advance(60_000)
  await until(() => engine.last.settled.length === 1)
  t.match(engine.last.settled, [{ result: { reason: 'timeout' } }])
})

t.test('an answer that the engine did not ask for again yet outlives the next park', async (t) => {
  const { registry, engine, executions, id, events } = await buildParked(t, { request: { approvalTimeoutMs: 0 } })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked')
  await executions.submit('e1', ok)
  const again = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  t.match(await again, { behavior: 'allow' })
  t.equal((await events()).filter(({ type }) => type.startsWith('permission_')).length, 2)
})

t.test('a client that is about to attach when the session parks sees it wake', async (t) => {
  const { registry, executions, id, park, clock } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  await park()
  await clock.advance(4_999)
  const sink = new FakeSink()
  session.attach(sink, {})
  await clock.advance(60_000)
  await executions.submit('e1', ok)
  await until(() => sink.events.some(({ type }) => type === 'execution_result'))
})

t.test('interrupt of a live session settles what it waits for', async (t) => {
  const { registry, engine, executions, id } = await buildParked(t)
  const sink = new FakeSink()
  ;(await registry.open(id, UNLIMITED)).attach(sink, {})
  await engine.last.defer('e1')
  await registry.send(id, { type: 'interrupt' })
  t.equal((await registry.get(id))?.status, 'idle')
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
  await until(() => sink.events.some(({ type }) => type === 'turn_completed'))
  const types = sink.events.map(({ type }) => type)
  t.ok(types.indexOf('execution_failed') < types.indexOf('turn_completed'))
})

t.test('interrupt of a session whose engine is being started again ends the turn that it goes on with', async (t) => {
  const started = deferred()
  let inTurn = false
  const { registry, engine, executions, id, park, events } = await buildParked(t, {
    script: {
      async start(runner) {
        runner.init()
        if (runner.context.restore) await started.promise
        inTurn = true
      },
      // as that of an agent whose process does not listen yet
      interrupt: (runner) => (inTurn ? runner.complete({ subtype: 'interrupted' }) : undefined),
    },
  })
  inTurn = false
  await park()
  const result = executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  const interrupted = registry.send(id, { type: 'interrupt' })
  await new Promise(setImmediate)
  started.resolve()
  await Promise.all([result, interrupted])
  t.equal((await registry.get(id))?.status, 'idle')
  t.match((await events()).at(-2), { type: 'turn_completed', subtype: 'interrupted' })
})

t.test('a refusal that ends the turn ends whatever else the turn waits for', async (t) => {
  const { registry, engine, executions, id } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  session.attach(new FakeSink(), {})
  await engine.last.defer('e1')
  const ask = (toolUseId: string) => engine.last.host.requestPermission({ toolName: 'x', toolUseId, input: {} })
  const [refused] = [ask('a'), ask('b')]
  await until(() => session.pendingPermissions.length === 2)
  await session.answerPermission(session.pendingPermissions[0]!.id, { behavior: 'deny', interrupt: true })
  t.match(await refused, { interrupt: true })
  engine.last.complete({ subtype: 'interrupted' })
  t.equal((await registry.get(id))?.status, 'idle', 'nobody is asked for a turn that is over')
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
})

t.test('a title that the store takes its time for is shown once it was confirmed', async (t) => {
  const store = new SlowStore()
  const { registry, id, park, clock } = await buildParked(t, { parking: { store } })
  await park()
  await clock.advance(10_000)
  store.hold()
  const renamed = registry.rename(id, 'Tides', UNLIMITED)
  await until(() => store.saving === 2)
  await clock.advance(6_000)
  store.release()
  t.equal((await renamed).title, 'Tides')
  t.equal((await registry.get(id))?.title, 'Tides')
})

t.test('an interrupt that was confirmed outlives the process', async (t) => {
  const store = new MemorySessionStore()
  const start: Script['start'] = (runner) => {
    runner.init()
    if (runner.context.restore) throw new Error('no memory')
  }
  const before = await buildParked(t, { parking: { store }, script: { start } })
  await before.park()
  await before.registry.send(before.id, { type: 'interrupt' })
  t.equal((await before.registry.get(before.id))?.status, 'parked', 'its engine could not be started')
  await before.gateway.close()
  const after = await buildGateway(t, { parking: { store }, script: native })
  await until(async () => (await after.registry.get(before.id))?.status === 'idle')
  t.match(after.engine.last.settled, [{ result: { reason: 'interrupted' } }])
})

t.test(
  'after a crash no seq that somebody may have seen is used again, and the log says that it is another',
  async (t) => {
    const store = new MemorySessionStore()
    const clock = new VirtualClock()
    const before = await buildParked(t, { parking: { store }, clock })
    await before.park()
    await before.executions.submit('e1', ok)
    before.engine.last.say('seen by somebody')
    const { lastSeq } = (await before.registry.get(before.id))!
    const { epoch } = (await before.registry.open(before.id, UNLIMITED)).log
    // nothing more is written: as if the process had been killed here
    const after = await buildGateway(t, { parking: { store }, clock, script: native })
    await until(async () => (await after.registry.get(before.id))?.status === 'running')
    const sink = new FakeSink()
    const woken = await after.registry.open(before.id, UNLIMITED)
    woken.attach(sink, { afterSeq: lastSeq, epoch })
    await until(() => sink.frames.some(({ type }) => type === 'synced'))
    t.match(sink.frames[0], { type: 'attached', truncated: true })
    const seqs = sink.events.map(({ seq }) => seq)
    t.equal(seqs[0], 1, 'the replay begins where the log does')
    t.ok(seqs.at(-1)! > lastSeq)
    t.notOk(seqs.includes(lastSeq))
  },
)

t.test('a session that waits unheard keeps its seq and its epoch over a restart', async (t) => {
  const store = new MemorySessionStore()
  const before = await buildParked(t, { parking: { store } })
  await before.park()
  const { lastSeq } = (await before.registry.get(before.id))!
  const { epoch } = (await before.registry.open(before.id, UNLIMITED)).log
  await before.gateway.close()
  const after = await buildGateway(t, { parking: { store }, script: native })
  const session = await after.registry.open(before.id, UNLIMITED)
  t.same({ epoch: session.log.epoch, lastSeq: session.log.lastSeq }, { epoch, lastSeq })
  await after.gateway.executions.submit('e1', ok)
  t.equal(session.log.read(lastSeq, lastSeq + 1, 1e6)?.toString() && session.log.lastSeq > lastSeq, true)
})

t.test('a result for a session that has ended is not applied, and not unknown while it is listed', async (t) => {
  const { registry, engine, executions, id } = await buildParked(t, { script: { capabilities: { parking: 'none' } } })
  await engine.last.defer('e1')
  await registry.end(id)
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
  t.match(await registry.get(id), { status: 'closed' })
})
