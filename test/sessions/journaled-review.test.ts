import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { eventsPage } from '../../src/sessions/log/events-page.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, echo, eventsOf } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

const idleReleaseMs = 60_000
/** A second process whose engines do not start, with a message that waits from the first one. */
async function waiting(t: Test) {
  const world = await buildJournaled(t)
  const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => world.engine.last.sent.length === 1)
  await world.registry.send(id, { type: 'user_message', text: 'second' })
  const script: Script = { start: () => Promise.reject(new Error('not now')) }
  const next = await world.again({ script })
  await until(() => next.engine.runners.length === 1)
  return { ...next, id, clock: world.clock }
}

t.test('a session whose start is tried again stays the one that clients are given', async (t) => {
  const { registry, engine, clock, id } = await waiting(t)
  for (let second = 0; second < 20; second++) await clock.advance(1_000)
  delete engine.script.start
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  await until(() => engine.last.sent.length === 1, 'the message that waited')
  t.ok((await registry.open(id, UNLIMITED)).live)
  t.equal((await registry.get(id))?.status, 'running')
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
})

t.test('a client that leaves does not call off the start that a message waits for', async (t) => {
  const { registry, engine, clock, id } = await waiting(t)
  const session = await registry.open(id, UNLIMITED)
  session.detach(session.attach(new FakeSink(), {}))
  delete engine.script.start
  await until(async () => {
    await clock.advance(1_000)
    return engine.last.sent.length > 0
  }, 'the start after the next wait')
  t.equal(engine.last.sent.length, 1)
})

t.test('a message that starts a silent engine again is handed to it', async (t) => {
  const { registry, engine, clock } = await buildJournaled(t, { idleReleaseMs, script: { ...echo(), start: () => {} } })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed)
  await registry.send(id, { type: 'user_message', text: 'second' })
  await until(() => engine.last.sent.length === 1)
  t.same(
    engine.runners.flatMap(({ sent }) => sent.map(({ text }) => text)),
    ['first', 'second'],
  )
  t.equal(engine.runners.length, 2)
})

t.test('an engine is not let go while it is asked something', async (t) => {
  const { registry, engine, clock } = await buildJournaled(t, { idleReleaseMs, script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs - 10)
  let answer = () => {}
  engine.last.setModel = () =>
    new Promise((resolve) => {
      answer = resolve
    })
  const asked = registry.send(id, { type: 'set_model', model: 'other' })
  await turns()
  await clock.advance(100)
  t.notOk(engine.last.closed)
  answer()
  await asked
  await clock.advance(idleReleaseMs * 2)
  t.ok(engine.last.closed, 'and goes afterwards')
})

t.test('an engine that could not be let go still counts', async (t) => {
  const { registry, engine, clock } = await buildJournaled(t, { idleReleaseMs, maxSessions: 1, script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  engine.script.snapshot = () => {
    throw new Error('no snapshot')
  }
  await clock.advance(idleReleaseMs)
  await turns()
  t.notOk(engine.last.closed)
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' })
})

t.test('a session that was refused is not there after a restart', async (t) => {
  const { registry, journal, clock, gateway, again } = await buildJournaled(t)
  journal.broken = true
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  t.same(await registry.list(), [])
  journal.broken = false
  await clock.advance(60_000)
  await turns()
  t.ok(gateway.ready)
  const { registry: next } = await again()
  t.same(await next.list(), [])
})

t.test('a run whose engine could not be built leaves no session behind', async (t) => {
  const { registry, again } = await buildJournaled(t, {
    createEngineRunner: () => Promise.reject(new Error('not installed')),
  })
  await t.rejects(registry.create({ cwd: SOME_CWD, prompt: 'x' }, { jobId: 'job' }), { code: 'SG_ERR_ENGINE_START' })
  t.same(await registry.list(), [])
  await turns()
  const { registry: next } = await again()
  t.same(await next.list(), [])
})

t.test('a repeated message is confirmed only once the first one is durable', async (t) => {
  const { registry, journal } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  journal.broken = true
  const message = { type: 'user_message' as const, id: 'c1', text: 'hello' }
  await t.rejects(registry.send(id, message), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await t.rejects(registry.send(id, message), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
})

t.test('a record goes once the turn after it is durable', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, gateway, journal, storage } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await gateway.executions.submit('e1', ok)
  await (await registry.open(id, UNLIMITED)).durable()
  journal.hold()
  engine.last.complete()
  await turns()
  t.ok((await storage.journal.get(id))?.state.midTurn, 'it could still go on from the park')
  journal.release()
  await until(async () => !(await storage.journal.get(id))?.state.midTurn, 'the park gone')
})

t.test('what was chosen outlasts a park and a restart', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, gateway, clock, again } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await registry.send(id, { type: 'set_model', model: 'other' })
  await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await clock.advance(20_000)
  await gateway.executions.submit('e1', ok)
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
  await (await registry.open(id, UNLIMITED)).durable()
  await turns()
  const { registry: next, engine: nextEngine } = await again()
  await next.send(id, { type: 'user_message', text: 'second' })
  t.match(nextEngine.last.context.config, { model: 'other', permissionMode: 'dontAsk' })
})

t.test('nothing of a session that is removed while somebody changes it is written again', async (t) => {
  const { registry, gateway, clock, storage, journal } = await buildJournaled(t, {
    script: echo(),
    sessionRetentionMs: 60_000,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, { type: 'close' })
  await clock.advance(59_999)
  const { get } = journal
  let go = () => {}
  const gone = new Promise<void>((resolve) => {
    go = resolve
  })
  journal.get = async (id) => {
    const whole = await get(id)
    await gone
    return whole
  }
  const renamed = registry.rename(id, 'late', UNLIMITED).catch((error) => error)
  await turns()
  journal.hold()
  await clock.advance(1)
  go()
  await turns()
  journal.release()
  await renamed
  await until(async () => (await registry.get(id)) === undefined)
  await turns()
  t.ok(gateway.ready, 'nothing is tried for ever')
  await clock.advance(120_000)
  t.ok(gateway.ready)
  t.same(await storage.journal.list(), [])
})

t.test('a session that goes on while it is removed leaves nothing', async (t) => {
  const { registry, gateway, engine, clock, journal } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  let talking = true
  const talk = () => {
    if (!talking) return
    engine.last.say('more')
    setImmediate(talk)
  }
  talk()
  journal.hold()
  await turns(3)
  const closed = registry.close(id, 'client')
  engine.last.say('between')
  await turns(3)
  journal.release()
  t.match(await closed, { status: 'closed' })
  await turns()
  talking = false
  await clock.advance(120_000)
  t.same(await journal.list(), [])
  t.ok(gateway.ready)
})

t.test('a log that cannot be read says so', async (t) => {
  const { registry, journal, again } = await buildJournaled(t, { script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await (await registry.open(id, UNLIMITED)).durable()
  const { registry: next } = await again()
  journal.read = () => Promise.reject(new Error('disk I/O error'))
  const session = await next.open(id, UNLIMITED)
  await t.rejects(eventsPage(session, {}), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.closed)
  t.same(sink.closed?.code, 1011)
})

/** A released session that was sent a message, and whose engine does not come to an end with starting again. */
async function startingAgain(t: Test) {
  const built = await buildJournaled(t, { idleReleaseMs, script: echo() })
  const { registry, engine, clock } = built
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs)
  engine.script.start = () => new Promise(() => {})
  const sent = registry.send(id, { type: 'user_message', text: 'second' }).catch((error) => error)
  await until(() => engine.runners.length === 2)
  return { ...built, id, sent }
}

t.test('an engine that is being started again at the shutdown takes nothing of what it goes on from', async (t) => {
  const { engine, gateway, again, id, sent } = await startingAgain(t)
  await gateway.close()
  t.match(await sent, { statusCode: 503 })
  t.ok(engine.last.closed)
  const { registry: next, engine: nextEngine } = await again({ script: echo() })
  await next.send(id, { type: 'user_message', text: 'third' })
  t.same(nextEngine.last.context.restore, { engine: 'scripted', state: ['first'] })
})

t.test('nobody is told of a session that a crash could take back', async (t) => {
  const { registry, journal } = await buildJournaled(t)
  journal.hold()
  const told: string[] = []
  registry.on('session_created', ({ session }) => told.push(session.id))
  const created = registry.create({ cwd: SOME_CWD })
  await turns()
  t.same(told, [])
  journal.release()
  const { id } = await created
  t.same(told, [id])
})

t.test('a shutdown does not wait for a turn that the engine never got', async (t) => {
  const { registry, engine, journal, gateway, clock } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  await (await registry.open(id, UNLIMITED)).durable()
  journal.hold(1)
  const sent = registry.send(id, { type: 'user_message', text: 'hello' })
  await until(async () => (await registry.get(id))?.status === 'running')
  const closing = gateway.close()
  await turns()
  journal.release()
  await Promise.all([closing, sent])
  t.equal(engine.last.sent.length, 0)
  t.ok(clock.now())
})

t.test('an execution that could not be written down is not waited for', async (t) => {
  const { registry, engine, journal, clock } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  journal.broken = true
  await t.rejects(engine.last.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' }))
  journal.broken = false
  await clock.advance(60_000)
  const session = await registry.open(id, UNLIMITED)
  t.same(session.executions.list(), [])
})

t.test('with requireApiKey an engine that is started again says whose credentials it uses, too', async (t) => {
  const script = echo()
  const { registry, engine, clock } = await buildJournaled(t, {
    idleReleaseMs,
    requireApiKey: true,
    script: { ...script, apiKeySource: 'ANTHROPIC_API_KEY' },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed)
  let init = () => {}
  engine.script.start = (runner) => {
    init = () => runner.init()
  }
  engine.script.apiKeySource = 'oauth'
  await registry.send(id, { type: 'user_message', text: 'second' })
  await turns()
  t.equal(engine.last.sent.length, 0)
  init()
  t.equal((await registry.get(id))?.status, 'failed')
  t.equal(engine.last.sent.length, 0)
})

t.test('a message to a session that is being deleted is told so', async (t) => {
  const { registry, engine, id, sent } = await startingAgain(t)
  t.match(await registry.close(id, 'client'), { status: 'closed' })
  t.match(await sent, { code: 'SG_ERR_SESSION_ENDED' })
  t.ok(engine.last.closed)
})

t.test('timers do not pile up while somebody watches a session whose engine does not start', async (t) => {
  const { registry, clock, id } = await waiting(t)
  const session = await registry.open(id, UNLIMITED)
  session.attach(new FakeSink(), {})
  for (let minute = 0; minute < 120; minute++) await clock.advance(60_000)
  t.ok(clock.pendingTimers < 10, `${clock.pendingTimers} timers`)
})

t.test(
  'a stored session can be looked at, renamed, listed, attached to, and goes on for who is attached',
  async (t) => {
    const { registry, clock, engine, again } = await buildJournaled(t, { idleReleaseMs, script: echo() })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    await clock.advance(idleReleaseMs)
    await clock.advance(30_000)
    t.match((await registry.page({ status: 'idle', profile: 'scripted', engine: 'provider' }, UNLIMITED)).items, [
      { id },
    ])
    t.same((await registry.page({ status: 'running' }, UNLIMITED)).items, [])
    t.match(await registry.rename(id, 'Renamed', UNLIMITED), { title: 'Renamed', status: 'idle' })
    await clock.advance(30_000)
    t.equal((await registry.get(id))?.title, 'Renamed')
    const sink = new FakeSink()
    const session = await registry.open(id, UNLIMITED)
    session.attach(sink, { afterSeq: 2 })
    await until(() => sink.frames.some(({ type }) => type === 'synced'))
    t.match(sink.frames[0], { truncated: false, replayingFrom: 2, session: { title: 'Renamed' } })
    t.equal(sink.events[0]?.seq, 3)
    await registry.send(id, { type: 'user_message', text: 'second' })
    await until(
      () => sink.events.filter(({ type }) => type === 'turn_completed').length === 2,
      'live on the same socket',
    )
    t.equal(engine.runners.length, 2)
    t.match(await registry.rename(id, null, UNLIMITED), { title: 'first' })
    const { registry: next } = await again()
    t.equal((await next.get(id))?.title, 'first')
    const page = JSON.parse((await eventsPage(await next.open(id, UNLIMITED), { limit: 3 })).toString())
    t.equal(page.events.length, 3)
    t.same(
      (await eventsOf({ registry: next }, id)).map(({ seq }) => seq),
      [...new Set((await eventsOf({ registry: next }, id)).map(({ seq }) => seq))],
    )
  },
)

t.test('what waits for an answer outside a turn is still parked after a restart', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, again } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, approvalTimeoutMs: 0 })
  void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
  await until(async () => (await registry.get(id))?.status === 'parked')
  await (await registry.open(id, UNLIMITED)).durable()
  const { registry: next } = await again()
  t.equal((await next.get(id))?.status, 'parked')
  t.equal((await next.get(id))?.parked?.permissions?.length, 1)
})

t.test('a parked session that could not be removed stays parked', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, journal, gateway } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await (await registry.open(id, UNLIMITED)).durable()
  journal.broken = true
  await t.rejects(registry.close(id, 'client'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  t.same(await gateway.executions.submit('e1', ok), { applied: true, sessionId: id })
  await until(() => engine.runners.length === 2 && engine.last.settled.length === 1, 'the wake')
  t.match(await registry.close(id, 'client'), { status: 'closed' })
})

t.test('what was cut off is told later, when the journal could not be read at the start', async (t) => {
  const { registry, engine, journal, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  await registry.send(id, { type: 'user_message', text: 'second' })
  const { get } = journal
  journal.get = () => Promise.reject(new Error('disk I/O error'))
  const { registry: next, engine: nextEngine } = await again()
  journal.get = get
  const events = await eventsOf({ registry: next }, id)
  t.equal(events.filter(({ type }) => type === 'turn_completed').length, 1)
  await until(() => nextEngine.runners.length === 1 && nextEngine.last.sent.length === 1, 'the message that waited')
  nextEngine.last.complete()
  await until(async () => (await next.get(id))?.status === 'idle')
})
