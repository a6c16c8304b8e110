import t from 'tap'
import type { SessionFiles } from '../../src/engines/runner.js'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked, native, ok, SlowStore } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

t.test('a session that waits is parked: its runner is gone, its number goes on, nothing was closed', async (t) => {
  const { registry, engine, executions, id, park, events, store } = await buildParked(t)
  await park()
  t.ok(engine.last.closed)
  const info = await registry.get(id)
  t.match(info, {
    status: 'parked',
    attachedClients: 0,
    parked: { executions: [{ executionId: 'e1', toolName: 'elsewhere' }] },
  })
  t.equal((await store.get(id))?.info.lastSeq, info?.lastSeq)
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
  t.equal((await registry.get(id))?.status, 'running')
  t.equal(engine.runners.length, 2)
  t.same(engine.last.context.restore, { engine: 'scripted', state: ['go'] })
  t.same(engine.last.settled, [{ executionId: 'e1', result: ok }])
  t.same(engine.last.sent, [], 'the opening prompt is not sent again')
  engine.last.complete()
  const log = await events()
  const types = log.map(({ type }) => type)
  t.same(types, [
    'user_message',
    'system_init',
    'status_changed',
    'execution_dispatched',
    'status_changed',
    'status_changed',
    'system_init',
    'execution_result',
    'turn_completed',
    'status_changed',
  ])
  t.same(
    log.map(({ seq }) => seq),
    log.map((_, index) => index + 1),
  )
  await until(async () => (await registry.get(id))?.status === 'idle')
  await until(async () => (await store.get(id)) === undefined)
})

t.test('while a client is attached a session does not park; parkDelayMs counts from the last detach', async (t) => {
  const { registry, engine, id, clock } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  await engine.last.defer('e1')
  await clock.advance(60_000)
  t.equal((await registry.get(id))?.status, 'running')
  session.detach(attachment)
  await clock.advance(1_999)
  t.equal((await registry.get(id))?.status, 'running')
  await clock.advance(1)
  await until(async () => (await registry.get(id))?.status === 'parked')
})

t.test('an engine that cannot park keeps its process', async (t) => {
  const { registry, engine, executions, id } = await buildParked(t, {
    script: { capabilities: { parking: 'none' } },
  })
  await engine.last.defer('e1')
  t.equal((await registry.get(id))?.status, 'running')
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
  t.equal(engine.runners.length, 1)
  t.same(engine.last.settled.length, 1)
})

t.test('an id is answered from the moment that it was deferred, and remembered', async (t) => {
  const { engine, executions, id } = await buildParked(t)
  await engine.last.host.deferExecution({ executionId: 'early', toolName: 'x' })
  t.match(await executions.submit('early', ok), { applied: true })
  t.same(await executions.submit('early', ok), { applied: false, sessionId: id })
  await engine.last.host.deferExecution({ executionId: 'early', toolName: 'x' })
  t.same(await executions.submit('early', ok), { applied: false, sessionId: id }, 'a redelivery changes nothing')
  await t.rejects(executions.submit('unknown', ok), { code: 'SG_ERR_EXECUTION_NOT_FOUND' })
})

t.test('a result that arrives while the park is being saved is kept and delivered once', async (t) => {
  const store = new SlowStore()
  const { registry, engine, executions, id } = await buildParked(t, { parking: { store } })
  store.hold()
  await engine.last.defer('e1')
  await until(() => store.saving > 0)
  t.equal((await registry.get(id))?.status, 'running', 'parked is shown once the save is durable')
  const answer = executions.submit('e1', ok)
  store.release()
  t.same(await answer, { applied: true, sessionId: id })
  t.equal(engine.runners.length, 2)
  t.same(engine.last.settled.length, 1)
})

t.test('fifty results at once: one is applied, and the engine sees one', async (t) => {
  const { engine, executions, park } = await buildParked(t)
  await park()
  const answers = await Promise.all(Array.from({ length: 50 }, () => executions.submit('e1', ok)))
  t.equal(answers.filter(({ applied }) => applied).length, 1)
  t.equal(engine.runners.length, 2, 'one rebuild')
  t.equal(engine.last.settled.length, 1)
})

t.test('results of one batch wake once and come together; what is left is parked again', async (t) => {
  const settle: Script['settle'] = (runner) => {
    if (runner.settled.length < 2) runner.host.waitForExecutions()
  }
  const { registry, engine, executions, id } = await buildParked(t, { script: { settle } })
  await engine.last.host.deferExecution({ executionId: 'a', toolName: 'x' })
  await engine.last.host.deferExecution({ executionId: 'b', toolName: 'x' })
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked')
  await executions.submit('a', ok)
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.same(
    (await registry.get(id))?.parked?.executions.map(({ executionId }) => executionId),
    ['b'],
  )
  await executions.submit('b', ok)
  t.equal((await registry.get(id))?.status, 'running')
  t.same(await executions.submit('a', ok), { applied: false, sessionId: id })
})

t.test('the watchdog answers with a timeout, whatever the length of the deadline', async (t) => {
  const { registry, engine, executions, id, park, clock } = await buildParked(t)
  const days = 40 * 24 * 3_600_000
  await park('e1', clock.now() + days)
  await clock.advance(days - 1)
  t.equal((await registry.get(id))?.status, 'parked')
  await clock.advance(1)
  await until(() => engine.last.settled.length === 1)
  t.match(engine.last.settled[0], { result: { status: 'failed', reason: 'timeout' } })
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
})

t.test('DELETE of a parked session: nothing wakes it, and it is told once', async (t) => {
  const { registry, executions, id, park, store } = await buildParked(t)
  await park()
  const closed: string[] = []
  registry.on('session_event', ({ event }) => void (event.type === 'session_closed' && closed.push(event.reason)))
  t.match(await registry.close(id, 'client'), { id, status: 'closed' })
  t.equal(await registry.get(id), undefined)
  t.equal(await store.get(id), undefined)
  await t.rejects(executions.submit('e1', ok), { code: 'SG_ERR_EXECUTION_NOT_FOUND' })
  await until(() => closed.length > 0)
  t.same(closed, ['client'])
})

t.test('a parked session can be read, renamed and looked into; other commands are refused', async (t) => {
  const snapshot: Script['snapshot'] = () => ({
    engine: 'scripted',
    state: {},
    files: { 'report.md': Buffer.from('grün').toString('base64') },
  })
  const { registry, id, park, events } = await buildParked(t, { script: { snapshot } })
  await park()
  await registry.rename(id, 'Waiting', UNLIMITED)
  t.match(await registry.get(id), { status: 'parked', title: 'Waiting' })
  const session = await registry.open(id, UNLIMITED)
  t.match(session.files?.list(), [{ path: 'report.md', bytes: 5 }])
  t.equal(Buffer.from(session.files!.read('report.md')!).toString(), 'grün')
  t.match((await events()).at(-1), { type: 'status_changed', status: 'parked' })
  for (const command of [
    { type: 'user_message', text: 'x' },
    { type: 'set_model' },
    { type: 'set_permission_mode', mode: 'default' },
  ] as const)
    await t.rejects(registry.send(id, command), { code: 'SG_ERR_SESSION_PARKED', message: /execution.*answer/ })
  await registry.send(id, { type: 'close' })
  t.equal(await registry.get(id), undefined, 'close removes it, as DELETE does')
})

t.test('files are as old in a park, and after a restart, as the engine said', async (t) => {
  const store = new MemorySessionStore()
  const contents = new Map([
    ['report.md', 'x'],
    ['__proto__', 'yz'],
  ])
  const files: SessionFiles = {
    list: () => [...contents].map(([path, text], index) => ({ path, bytes: text.length, modifiedAt: 7 + index })),
    read: (path) => Buffer.from(contents.get(path)!),
  }
  const snapshot: Script['snapshot'] = () => ({
    engine: 'scripted',
    state: {},
    files: Object.fromEntries([...contents].map(([path, text]) => [path, Buffer.from(text).toString('base64')])),
  })
  const before = await buildParked(t, { parking: { store }, script: { files, snapshot } })
  await before.park()
  const listed = async ({ registry }: Pick<typeof before, 'registry'>) =>
    (await registry.open(before.id, UNLIMITED)).files?.list()
  t.same(await listed(before), files.list())
  await before.gateway.close()
  t.same(await listed(await buildGateway(t, { parking: { store }, script: native })), files.list())
})

t.test('a file that an engine lists without a time is as old as its park, also after a restart', async (t) => {
  const store = new MemorySessionStore()
  const times = { none: undefined, never: Number.NaN, date: new Date(7) }
  const names = Object.keys(times)
  const files = {
    list: () =>
      Object.entries(times).map(([path, modifiedAt]) => ({ path, bytes: 0, modifiedAt: modifiedAt as never })),
    read: () => Buffer.alloc(0),
  }
  const contents = Object.fromEntries(names.map((name) => [name, '']))
  const snapshot: Script['snapshot'] = () => ({ engine: 'scripted', state: {}, files: contents })
  const before = await buildParked(t, { parking: { store }, script: { files, snapshot } })
  await before.park()
  const at = (await before.registry.get(before.id))!.parked!.since
  await before.gateway.close()
  const after = await buildGateway(t, { parking: { store }, script: native })
  const listed = (await after.registry.open(before.id, UNLIMITED)).files?.list()
  t.same(
    listed?.map(({ modifiedAt }) => modifiedAt),
    [at, at, 7],
  )
})

t.test('a client that attached to a parked session sees it wake on the same socket', async (t) => {
  const { registry, executions, id, park } = await buildParked(t)
  await park()
  const sink = new FakeSink()
  const session = await registry.open(id, UNLIMITED)
  session.attach(sink, {})
  await until(() => sink.frames.some(({ type }) => type === 'synced'))
  t.match(sink.frames[0], { session: { status: 'parked' }, pendingExecutions: [{ executionId: 'e1' }] })
  await executions.submit('e1', ok)
  await until(() => sink.events.some(({ type }) => type === 'execution_result'))
  const seqs = sink.events.map(({ seq }) => seq)
  t.same(
    seqs,
    seqs.map((_, index) => index + 1),
  )
})

t.test('interrupt settles what is waited for and ends the turn', async (t) => {
  const { registry, engine, executions, id, park } = await buildParked(t)
  await park()
  await registry.send(id, { type: 'interrupt' })
  t.match(engine.last.settled, [{ result: { status: 'failed', reason: 'interrupted' } }])
  t.equal((await registry.get(id))?.status, 'idle')
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
})

t.test('an approval without a time limit parks, and its answer wakes the session days later', async (t) => {
  const world = await buildParked(t, { request: { approvalTimeoutMs: 0 } })
  const { registry, engine, id, events } = world
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  t.match(request, { toolName: 'Write', toolUseId: 'u1' })
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  t.equal((await registry.get(id))?.status, 'running')
  await t.rejects(registry.resolvePermission(id, request!.id, { behavior: 'deny' }, UNLIMITED), {
    code: 'SG_ERR_PERMISSION_NOT_FOUND',
  })
  const decision = await engine.last.host.requestPermission({
    toolName: 'Write',
    toolUseId: 'u1',
    input: { path: 'a' },
  })
  t.same(decision, { behavior: 'allow', updatedInput: { path: 'a' } })
  const told = (await events()).filter(({ type }) => type.startsWith('permission_')).map(({ type }) => type)
  t.same(told, ['permission_requested', 'permission_resolved'], 'asking again tells nothing new')
})

t.test('an approval that is still open is asked again under the same id', async (t) => {
  const { registry, engine, executions, id } = await buildParked(t, { request: { approvalTimeoutMs: 0 } })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  await executions.submit('e1', ok)
  t.equal((await registry.get(id))?.status, 'awaiting_approval')
  const again = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await until(async () => (await registry.get(id))?.status === 'parked')
  await registry.resolvePermission(id, request!.id, { behavior: 'deny', message: 'no' }, UNLIMITED)
  t.match(await engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} }), {
    behavior: 'deny',
    message: 'no',
  })
  void again
})

t.test('an answer that comes while the engine is being started again is the one that it is told', async (t) => {
  const started = deferred()
  const start: Script['start'] = async (runner) => {
    runner.init()
    if (runner.context.restore) await started.promise
  }
  const { registry, engine, executions, id, park, events } = await buildParked(t, {
    request: { approvalTimeoutMs: 0 },
    script: { start },
  })
  const ask = () => engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
  void ask()
  await park()
  const [request] = (await registry.get(id))!.parked!.permissions!
  const result = executions.submit('e1', ok)
  await until(async () => (await registry.get(id))?.status === 'awaiting_approval')
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  started.resolve()
  await result
  const decision = ask()
  t.equal((await registry.get(id))?.pendingPermissions, 0, 'nobody is asked again')
  t.same(await decision, { behavior: 'allow', updatedInput: { path: 'a' } })
  t.equal((await events()).filter(({ type }) => type.startsWith('permission_')).length, 2)
})

t.test('an engine that cannot be rebuilt: the park and the result are kept and the wake is tried again', async (t) => {
  let broken = false
  const start: Script['start'] = (runner) => {
    if (broken) throw new Error('no memory')
    runner.init()
  }
  const { registry, engine, executions, id, park, clock } = await buildParked(t, { script: { start } })
  await park()
  broken = true
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
  t.match(await registry.get(id), { status: 'parked', statusDetail: /wake/ })
  broken = false
  await clock.advance(1_000)
  await until(async () => (await registry.get(id))?.status === 'running')
  t.equal(engine.last.settled.length, 1)
})

t.test('what a session waits for when it ends fails with it, and is waited for no more', async (t) => {
  const { registry, engine, executions, id, events } = await buildParked(t)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  await engine.last.defer('e1')
  engine.last.host.emit({ type: 'session_error', message: 'gone' })
  session.detach(attachment)
  t.match(
    (await events()).slice(-5).map(({ type }) => type),
    ['execution_dispatched', 'session_error', 'execution_failed', 'status_changed', 'session_closed'],
  )
  t.match(
    (await events()).find(({ type }) => type === 'execution_failed'),
    { executionId: 'e1', reason: 'closed' },
  )
  t.same(session.snapshot().pendingExecutions, [])
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
})
