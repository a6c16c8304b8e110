import t from 'tap'
import type { CreateEngineRunner } from '../../src/engines/runner.js'
import { GatewayError } from '../../src/errors.js'
import { KeyedLock } from '../../src/lib/keyed-lock.js'
import { UNLIMITED } from '../../src/principal.js'
import { FallingAsleep, type SleepTimes } from '../../src/sessions/life/falling-asleep.js'
import type { SleepParts, Waking } from '../../src/sessions/life/waking.js'
import type { Session } from '../../src/sessions/session.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, echo, eventsOf } from '../fixtures/journaled.js'
import { type Script, ScriptedEngine } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const idleReleaseMs = 60_000

const idle = async (t: Parameters<typeof buildGateway>[0], options: BuildOptions = {}) => {
  const world = await buildGateway(t, { idleReleaseMs, script: echo(), ...options })
  const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await world.registry.get(id))?.status === 'idle')
  const session = await world.registry.open(id, UNLIMITED)
  return { ...world, id, session }
}

t.test('the engine of an idle session goes after a while, and the next message starts it again', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  await clock.advance(idleReleaseMs - 1)
  t.notOk(engine.last.closed)
  await clock.advance(1)
  await until(() => engine.last.closed, 'the engine gone')
  t.equal((await registry.get(id))?.status, 'idle')
  await registry.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  t.equal(engine.runners.length, 2)
  t.same(engine.last.context.restore, { engine: 'scripted', state: ['first'] })
  t.same(engine.last.sent, [{ text: 'second', commandId: undefined }])
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed, 'gone again')
})

t.test('a message that is being kept when an engine is lost at a turn’s end goes to the next one', async (t) => {
  const { registry, engine, journal } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  journal.hold()
  const said = registry.send(id, { type: 'user_message', text: 'second' })
  await until(() => session.messagesComing === 1)
  Object.assign(engine.last, { isSpent: true })
  engine.last.complete()
  await until(() => engine.runners[0]?.closed)
  await new Promise(setImmediate)
  journal.release()
  await said
  await until(() => engine.last.sent.some(({ text }) => text === 'second'))
  t.equal(engine.runners.length, 2)
})

t.test('an engine stays while somebody is attached, waits or works', async (t) => {
  const { registry, engine, clock, id, session } = await idle(t)
  const attachment = session.attach(new FakeSink(), {})
  await clock.advance(idleReleaseMs * 2)
  t.notOk(engine.last.closed, 'a client is there')
  engine.script.send = () => {}
  await registry.send(id, { type: 'user_message', text: 'long' })
  session.detach(attachment)
  await clock.advance(idleReleaseMs * 2)
  t.notOk(engine.last.closed, 'a turn is in progress')
  engine.last.complete()
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed, 'nobody is concerned any more')
})

t.test('an engine stays while something goes on beside its turns, and goes a while after that', async (t) => {
  const { engine, clock } = await idle(t)
  const runner = Object.assign(engine.last, { canRelease: false })
  await clock.advance(idleReleaseMs * 3 - 1)
  t.notOk(runner.closed)
  runner.say('what came of it')
  runner.canRelease = true
  await clock.advance(idleReleaseMs - 1)
  t.notOk(runner.closed, 'that was said just now')
  await clock.advance(1)
  await until(() => runner.closed, 'the engine gone')
})

t.test('an engine at work stays however soon others go, and is looked at now and then', async (t) => {
  let looks = 0
  const start: Script['start'] = (runner) => {
    Object.defineProperty(runner, 'canRelease', { get: () => ++looks < 0, configurable: true })
    runner.init()
  }
  const { engine, clock } = await idle(t, { idleReleaseMs: 0, script: { ...echo(), start } })
  await clock.advance(10_000)
  t.notOk(engine.last.closed)
  t.ok(looks < 50, `looked at ${looks} times`)
  Object.defineProperty(engine.last, 'canRelease', { value: true })
  await clock.advance(1_000)
  await until(() => engine.last.closed, 'the engine gone')
})

t.test('an engine that cannot say whether it is at work goes, and nobody else is hurt by that', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  Object.defineProperty(engine.last, 'canRelease', {
    get: () => {
      throw new Error('not now')
    },
  })
  await registry.send(id, { type: 'interrupt' })
  await clock.advance(idleReleaseMs)
  await until(() => engine.last.closed, 'the engine gone')
})

t.test('an interrupt is for what goes on beside the turns, too', async (t) => {
  const { registry, engine, id } = await idle(t)
  let interrupts = 0
  Object.assign(engine.last, { canRelease: false, interrupt: async () => void interrupts++ })
  await registry.send(id, { type: 'interrupt' })
  t.equal(interrupts, 1)
  Object.assign(engine.last, { canRelease: true })
  await registry.send(id, { type: 'interrupt' })
  t.equal(interrupts, 1, 'of one that does nothing there is nothing to end')
})

t.test('what was chosen is taken up, whatever comes first', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  await registry.send(id, { type: 'set_model', model: 'other' })
  await clock.advance(idleReleaseMs)
  await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
  t.match(engine.last.context.config, { model: 'other', permissionMode: 'default' })
  t.equal(engine.runners.length, 2)
  await clock.advance(idleReleaseMs)
  await registry.send(id, { type: 'user_message', text: 'second' })
  t.match(engine.last.context.config, { model: 'other', permissionMode: 'dontAsk' })
})

t.test('messages that come while the engine starts are all handed to the one engine, in order', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  await clock.advance(idleReleaseMs)
  let started = () => {}
  engine.script.start = (runner) =>
    new Promise((resolve) => {
      started = () => {
        runner.init()
        resolve()
      }
    })
  const sent = ['a', 'b', 'c'].map((text) => registry.send(id, { type: 'user_message', text }))
  await until(() => engine.runners.length === 2)
  t.equal(engine.last.sent.length, 0)
  started()
  await Promise.all(sent)
  await until(() => engine.last.sent.length === 3)
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['a', 'b', 'c'],
  )
  t.equal(engine.runners.length, 2)
})

t.test('a start that fails refuses the message and leaves the session idle; the next one tries again', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  await clock.advance(idleReleaseMs)
  engine.script.start = () => Promise.reject(new Error('no such file'))
  await t.rejects(registry.send(id, { type: 'user_message', text: 'second' }), { code: 'SG_ERR_ENGINE_START' })
  t.match(await registry.get(id), { status: 'idle' })
  delete engine.script.start
  await registry.send(id, { type: 'user_message', text: 'third' })
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['third'],
  )
})

t.test('a session that is deleted while its engine is started again is no fault of anything', async (t) => {
  const errors: unknown[] = []
  const logger = { info: () => {}, warn: () => {}, error: (fault: unknown) => void errors.push(fault) }
  const { registry, engine, clock, id } = await idle(t, { logger })
  await clock.advance(idleReleaseMs)
  engine.script.start = () => new Promise(() => {})
  const refused = t.rejects(registry.send(id, { type: 'user_message', text: 'second' }), {
    code: 'SG_ERR_SESSION_ENDED',
  })
  await until(() => engine.runners.length === 2)
  t.match(await registry.close(id, 'client'), { status: 'closed' })
  await refused
  await until(() => engine.last.closed)
  t.same(errors, [])
})

t.test('a message that waits for the engine while a removal is refused is given to the engine', async (t) => {
  const { registry, engine, clock, journal } = await buildJournaled(t, { idleReleaseMs, script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs)
  let isFirst = true
  engine.script.start = (runner) => {
    if (!isFirst) return runner.init()
    isFirst = false
    return new Promise(() => {})
  }
  const sent = registry.send(id, { type: 'user_message', text: 'second' })
  await until(() => engine.runners.length === 2)
  journal.broken = true
  await t.rejects(registry.close(id, 'client'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  await sent
  await until(() => engine.last.sent.length === 1)
  t.match(engine.last.sent, [{ text: 'second' }])
})

t.test('one that its agent has lost ends with one error that says what to do', async (t) => {
  const { registry, engine, clock, id, session } = await idle(t)
  await clock.advance(idleReleaseMs)
  engine.script.start = () => Promise.reject(new GatewayError('SG_ERR_AGENT_STATE_GONE'))
  const send = () => registry.send(id, { type: 'user_message', text: 'second' })
  await t.rejects(send(), { code: 'SG_ERR_AGENT_STATE_GONE' })
  t.match(await registry.get(id), { status: 'failed', statusDetail: /Create a new session/ })
  await t.rejects(send(), { code: 'SG_ERR_SESSION_ENDED' })
  const errors = (await eventsOf({ registry }, session.id)).filter(({ type }) => type === 'session_error')
  t.match(errors, [{ code: 'SG_ERR_AGENT_STATE_GONE' }])
})

t.test('messages that wait for an engine after a restart say why they do, and get one when there is one', async (t) => {
  const { registry, engine, again, clock } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  await registry.send(id, { type: 'user_message', text: 'second' })
  const start: Script['start'] = () => Promise.reject(new Error('no such file'))
  const next = await again({ script: { start } })
  await until(async () => (await next.registry.get(id))?.statusDetail?.includes('could not be started'), 'the reason')
  delete next.engine.script.start
  await clock.advance(2_000)
  await until(() => next.engine.last.sent.length === 1)
  t.notOk((await next.registry.get(id))?.statusDetail)
})

t.test('a session can be closed and deleted without its engine', async (t) => {
  const { registry, engine, clock, id } = await idle(t)
  await clock.advance(idleReleaseMs)
  await registry.send(id, { type: 'close' })
  t.equal((await registry.get(id))?.status, 'closed')
  t.match(await registry.close(id, 'client'), { status: 'closed' })
  t.equal(engine.runners.length, 1)
})

t.test('an engine that cannot be gone on from keeps its process, and after a restart says what it lost', async (t) => {
  const engine = new ScriptedEngine(echo())
  const forgetful: CreateEngineRunner = async (context) => {
    const runner = await engine.create(context)
    Object.defineProperty(runner, 'snapshot', { value: undefined })
    return runner
  }
  const { registry, clock, again } = await buildJournaled(t, { idleReleaseMs, createEngineRunner: forgetful })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await clock.advance(idleReleaseMs * 2)
  t.notOk(engine.last.closed)
  const { registry: next } = await again()
  await next.send(id, { type: 'user_message', text: 'second' })
  const events = await eventsOf({ registry: next }, id)
  t.match(
    events.filter(({ type }) => type === 'engine_event'),
    [{ payload: { type: 'history_lost' } }],
  )
})

t.test('totals go on when an engine has to begin anew, however often', async (t) => {
  const engine = new ScriptedEngine({
    send: (runner) => {
      const usage = { inputTokens: 10, outputTokens: 5, cacheCreationTokens: 0, cacheReadTokens: 0 }
      runner.complete({ totalCostUsd: 0.5 * (runner.turns + 1), usage })
    },
  })
  const forgetful: CreateEngineRunner = async (context) => {
    const runner = await engine.create(context)
    Object.defineProperty(runner, 'snapshot', { value: undefined })
    return runner
  }
  const { registry, again } = await buildJournaled(t, { createEngineRunner: forgetful })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await registry.get(id))?.numTurns === 2)
  for (const [at, turns] of [3, 4].entries()) {
    const next = await again()
    await next.registry.send(id, { type: 'user_message', text: 'next' })
    const told = () => next.registry.get(id)
    await until(async () => (await told())?.status === 'idle' && (await told())!.usage.inputTokens === turns * 10)
    t.match(await told(), { numTurns: turns, cost: turns * 0.5 }, `after restart ${at + 1}`)
    const end = (await eventsOf(next, id)).findLast(({ type }) => type === 'turn_completed')
    t.match(end, { numTurns: turns, totalCostUsd: turns * 0.5 })
  }
})

t.test('what was kept before turns that nothing is kept of is not gone on from, and that is told', async (t) => {
  const { registry, again } = await buildJournaled(t, { script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  const broken: Script = {
    ...echo(),
    snapshot: () => {
      throw new Error('not now')
    },
  }
  const second = await again({ script: broken })
  await second.registry.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await second.registry.get(id))?.status === 'idle')
  t.ok(second.engine.last.context.restore, 'it went on from the first turn')
  const third = await again({ script: echo() })
  await third.registry.send(id, { type: 'user_message', text: 'third' })
  await until(async () => (await third.registry.get(id))?.status === 'idle')
  t.notOk(third.engine.last.context.restore, 'which knows nothing of the second')
  const losses = async (world: typeof third) =>
    (await eventsOf(world, id)).filter(({ type }) => type === 'engine_event').length
  t.equal(await losses(third), 1)
  const fourth = await again({ script: echo() })
  await fourth.registry.send(id, { type: 'user_message', text: 'fourth' })
  t.same(fourth.engine.last.context.restore?.state, ['third'], 'from then on it is kept again')
  t.equal(await losses(fourth), 1)
})

t.test('with a journal a released session leaves the memory too', async (t) => {
  const { registry, clock, engine, eventsOf: eventsNow } = await buildJournaled(t, { idleReleaseMs, script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  const session = await registry.open(id, UNLIMITED)
  await clock.advance(idleReleaseMs)
  await clock.advance(60_000)
  t.not(await registry.open(id, UNLIMITED), session, 'it is read from the journal')
  t.match(await registry.page({}, UNLIMITED), { items: [{ id, status: 'idle' }] })
  t.match((await eventsNow(id)).slice(0, 3), [
    { seq: 1, type: 'user_message' },
    { seq: 2, type: 'system_init' },
    { type: 'status_changed' },
  ])
  await registry.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  t.equal(engine.runners.length, 2)
  t.equal((await eventsNow(id)).filter(({ type }) => type === 'assistant_message').length, 2)
})

t.test('an engine whose time has come while another one was started stays, when it is needed by then', async (t) => {
  let started = () => {}
  const starting = new Promise<void>((resolve) => {
    started = resolve
  })
  const released: string[] = []
  const session = {
    id: 's1',
    activeAt: 0,
    clients: { count: 0, leftAt: undefined },
    leaveDesk: { canPark: false, canRelease: true, letGo: () => void released.push('s1'), fallAsleep: () => {} },
  }
  const mailbox = new KeyedLock()
  const parts = {
    clock: new VirtualClock(),
    mailbox,
    table: { onEngine: () => {} },
    keeping: {},
    parkDelayMs: 0,
    idleReleaseMs: 0,
  }
  const fallingAsleep = new FallingAsleep(parts as unknown as SleepParts & SleepTimes, {} as Waking)
  const turn = () => new Promise(setImmediate)
  const rousing = mailbox.run(session.id, () => starting)
  fallingAsleep.consider(session as unknown as Session)
  await turn()
  session.leaveDesk.canRelease = false
  started()
  await rousing
  await turn()
  t.same(released, [], 'a turn began')
  session.leaveDesk.canRelease = true
  fallingAsleep.consider(session as unknown as Session)
  await turn()
  t.same(released, ['s1'])
})
