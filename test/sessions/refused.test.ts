import t, { type Test } from 'tap'
import type { PermissionDecision } from '../../src/engines/runner.js'
import { UNLIMITED } from '../../src/principal.js'
import { stateOf } from '../../src/sessions/kept/record.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'

const UNAVAILABLE = { code: 'SG_ERR_STORE_UNAVAILABLE', statusCode: 503, retryAfterS: 5 }

/** A session in its first turn that waits for an approval and a result, watched so that it does not park. */
async function working(t: Test) {
  const modes: string[] = []
  const world = await buildJournaled(t, {
    script: { capabilities: { parking: 'native', permissionModes: ['default', 'dontAsk'] } },
  })
  const { registry, engine } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  engine.last.setPermissionMode = async (mode) => void modes.push(mode)
  const session = await registry.open(id, UNLIMITED)
  session.attach(new FakeSink(), {})
  const decided: PermissionDecision[] = []
  void engine.last.host
    .requestPermission({ toolName: 'write', toolUseId: 'u1', input: { path: 'a' } })
    .then((decision) => decided.push(decision))
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.pendingPermissions === 1)
  await session.durable()
  const requestId = session.pendingPermissions[0]!.id
  return { ...world, id, session, requestId, decided, modes }
}

type Working = Awaited<ReturnType<typeof working>>

/** Everything that a session is asked to keep: each refused, then nothing of it is there, and all of it works afterwards. */
const ASKED: Record<string, { ask(world: Working): Promise<unknown>; done(world: Working): unknown }> = {
  'a message': {
    ask: ({ registry, id }) => registry.send(id, { type: 'user_message', text: 'refused', id: 'c1' }),
    done: ({ session }) => JSON.stringify(stateOf(session)).includes('refused'),
  },
  'a title': {
    ask: ({ registry, id }) => registry.rename(id, 'refused', UNLIMITED),
    done: async ({ registry, id }) => (await registry.get(id))?.title === 'refused',
  },
  'a permission mode': {
    ask: ({ registry, id }) => registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' }),
    done: ({ session, modes }) => session.chosen !== undefined || modes.length > 0,
  },
  'a model': {
    ask: ({ registry, id }) => registry.send(id, { type: 'set_model', model: 'refused' }),
    done: ({ session }) => session.chosen !== undefined,
  },
  'an allow': {
    ask: ({ registry, id, requestId }) => registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED),
    done: ({ decided }) => decided.length > 0,
  },
  'a deny': {
    ask: ({ registry, id, requestId }) =>
      registry.send(id, { type: 'permission_decision', requestId, behavior: 'deny', message: 'no' }),
    done: ({ decided }) => decided.length > 0,
  },
  'a result': {
    ask: ({ gateway }) => gateway.executions.submit('e1', ok),
    done: ({ engine }) => engine.last.settled.length > 0,
  },
  'a close': {
    ask: ({ registry, id }) => registry.send(id, { type: 'close' }),
    done: ({ session, engine }) => session.ended || engine.last.closed,
  },
  'a removal': {
    ask: ({ registry, id }) => registry.close(id, 'client'),
    done: async ({ registry, id, engine }) => !(await registry.get(id)) || engine.last.closed,
  },
}

for (const [what, { ask, done }] of Object.entries(ASKED))
  t.test(`${what} that was refused for the disk's sake takes no effect, then or later`, async (t) => {
    const world = await working(t)
    const { registry, journal, clock, id, session, engine } = world
    const before = session.info()
    journal.broken = true
    await t.rejects(ask(world), UNAVAILABLE)
    await t.rejects(ask(world), UNAVAILABLE, 'nor when it is asked again')
    t.notOk(await done(world))
    journal.broken = false
    await clock.advance(60_000)
    await session.durable()
    t.notOk(await done(world), 'nor when the disk is back')
    t.match(await registry.get(id), { status: before.status, title: before.title, pendingPermissions: 1 })
    t.equal(engine.last.sent.length, 1)

    const { registry: next } = await world.again()
    const events = JSON.stringify(await eventsOf({ registry: next }, id))
    t.notMatch(events, /"refused"|"allow"|"c1"|execution_result/, 'nor after a restart')
    t.not((await next.get(id))?.title, 'refused')
  })

for (const [what, { ask, done }] of Object.entries(ASKED))
  t.test(`${what} is taken once the disk is back, under the same id`, async (t) => {
    const world = await working(t)
    world.journal.broken = true
    await t.rejects(ask(world), UNAVAILABLE)
    world.journal.broken = false
    await ask(world)
    t.ok(await done(world))
  })

/** What a crash leaves right after something was accepted, before it was done. */
async function crashed(t: Test, what: string) {
  const world = await working(t)
  const { journal, session } = world
  await session.durable()
  journal.hold(1)
  const asked = ASKED[what]!.ask(world)
  asked.catch(() => {})
  await until(() => journal.deposits.length > 0, 'written ahead')
  const starting = world.again()
  journal.release()
  const { registry, engine } = await starting
  return { ...world, next: registry, nextEngine: engine, events: await eventsOf({ registry }, world.id) }
}

t.test('a message that was written down before a crash is begun after it, once', async (t) => {
  const { next, nextEngine, id, events } = await crashed(t, 'a message')
  t.match(
    events.filter(({ type }) => type === 'user_message'),
    [{ message: { content: 'go' } }, { message: { content: 'refused' }, commandId: 'c1' }],
  )
  await until(() => nextEngine.runners.length === 1 && nextEngine.last.sent.length === 1)
  await next.send(id, { type: 'user_message', text: 'refused', id: 'c1' })
  nextEngine.last.complete()
  await until(async () => (await next.get(id))?.status === 'idle')
  t.same(nextEngine.last.sent, [{ text: 'refused', commandId: 'c1' }])
})

t.test('an answer and a result that were written down before a crash are told after it', async (t) => {
  const answered = await crashed(t, 'an allow')
  t.match(
    answered.events.filter(({ type }) => type === 'permission_resolved'),
    [{ behavior: 'allow', resolvedBy: 'client' }],
  )
  const settled = await crashed(t, 'a result')
  t.ok(settled.events.find(({ type }) => type === 'execution_result'))
})

t.test('a title, a mode and a close that were written down before a crash hold after it', async (t) => {
  const renamed = await crashed(t, 'a title')
  t.equal((await renamed.next.get(renamed.id))?.title, 'refused')
  const chosen = await crashed(t, 'a permission mode')
  const dontAsk = { permissionMode: 'dontAsk' }
  t.same(
    (await chosen.next.open(chosen.id, UNLIMITED)).chosen,
    { ...dontAsk, ahead: dontAsk },
    'also of the next engine',
  )
  const closed = await crashed(t, 'a close')
  t.equal((await closed.next.get(closed.id))?.status, 'closed')
})

t.test('an agent can be interrupted while the disk takes nothing', async (t) => {
  const { registry, engine, journal } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await registry.durable(id)
  journal.broken = true
  await registry.send(id, { type: 'interrupt' })
  t.equal((await registry.get(id))?.status, 'idle')
})

t.test('a mode that the agent refuses is not taken up by its next start', async (t) => {
  const { registry, engine, session, id } = await working(t)
  engine.last.setPermissionMode = async () => {
    throw new Error('not now')
  }
  await t.rejects(registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' }), {
    code: 'SG_ERR_ENGINE_REFUSED',
  })
  t.equal(session.chosen, undefined)
})

t.test(
  'what an agent says while the disk takes nothing is bounded: its turn ends, says why, and the session goes on',
  async (t) => {
    const { registry, engine, journal, clock, gateway, eventsOf: events } = await buildJournaled(t)
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await registry.durable(id)
    const text = 'x'.repeat(64 * 1024)
    let interrupted = 0
    const interrupt = engine.last.interrupt.bind(engine.last)
    engine.last.interrupt = () => {
      interrupted++
      return interrupt()
    }
    for (let said = 0; said < 100; said++) engine.last.say(text)
    await registry.durable(id)
    t.equal(interrupted, 0, 'much at once is nothing bad while it is taken')

    journal.broken = true
    let said = 0
    for (; said < 1_000 && interrupted === 0; said++) {
      engine.last.say(text)
      await new Promise(setImmediate)
    }
    t.ok(said * text.length < 6 * 1024 * 1024, 'some megabytes are held back')
    t.equal((await registry.get(id))?.status, 'idle')
    journal.broken = false
    await clock.advance(60_000)
    await until(() => gateway.ready)
    t.match(
      (await events(id)).filter(({ type }) => type === 'turn_completed'),
      [{ subtype: 'interrupted', isError: true, errors: [/The storage takes nothing/] }],
    )
    await registry.send(id, { type: 'user_message', text: 'again' })
    await until(() => engine.last.sent.length === 2)
  },
)

t.test('an agent that cannot be stopped from speaking while the disk takes nothing ends its session', async (t) => {
  const { registry, engine, journal } = await buildJournaled(t, { script: { interrupt: () => {} } })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await registry.durable(id)
  journal.broken = true
  const text = 'x'.repeat(256 * 1024)
  for (let said = 0; said < 100 && (await registry.get(id))?.status === 'running'; said++) {
    engine.last.say(text)
    await new Promise(setImmediate)
  }
  t.match(await registry.get(id), { status: 'failed', statusDetail: /The storage takes nothing/ })
  t.ok(engine.last.closed)
})

t.test('the first write that is taken wakes every session that waits', async (t) => {
  const { registry, engine, journal, clock, gateway } = await buildJournaled(t)
  const ids: string[] = []
  for (let index = 0; index < 5; index++) ids.push((await registry.create({ cwd: SOME_CWD })).id)
  journal.broken = true
  for (const runner of engine.runners) runner.say('held back')
  await until(() => !gateway.ready)
  // by now they would wait for half a minute each
  for (let second = 0; second < 120; second++) await clock.advance(1_000)
  journal.broken = false
  await registry.create({ cwd: SOME_CWD })
  await until(() => gateway.ready)
  for (const id of ids)
    t.ok(journal.writes.some((write) => write.id === id && JSON.stringify(write).includes('held back')))
})

t.test('of a session that was refused nobody is told anything', async (t) => {
  const { registry, journal, clock } = await buildJournaled(t)
  const told: string[] = []
  for (const event of ['session_created', 'session_event', 'session_removed'] as const)
    registry.on(event, () => told.push(event))
  journal.broken = true
  await t.rejects(registry.create({ cwd: SOME_CWD, prompt: 'refused' }), UNAVAILABLE)
  journal.broken = false
  await clock.advance(60_000)
  await new Promise(setImmediate)
  t.same(told, [])
  t.same(await registry.list(), [])
})

t.test('a disk that does not answer at all is a refusal, too, and nothing is done when it does', async (t) => {
  const { registry, journal, clock, engine } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.durable(id)
  journal.hold()
  const sent = registry.send(id, { type: 'user_message', text: 'refused' })
  sent.catch(() => {})
  await new Promise(setImmediate)
  await clock.advance(10_000)
  await t.rejects(sent, UNAVAILABLE)
  journal.release()
  await registry.durable(id)
  await new Promise(setImmediate)
  t.equal(engine.last.sent.length, 0)
})
