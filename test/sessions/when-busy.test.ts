import t from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { type Script, ScriptedEngine, type ScriptedRunner } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

async function build(t: Parameters<typeof buildJournaled>[0], options: Parameters<typeof buildJournaled>[1] = {}) {
  const world = await buildJournaled(t, options)
  const { registry, engine } = world
  const { id } = await registry.create({ cwd: SOME_CWD })
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  const say = (text: string, whenBusy?: 'interrupt' | 'reject') =>
    registry.send(id, { type: 'user_message', text, ...(whenBusy && { whenBusy }) })
  const isIdle = async () => (await registry.get(id))?.status === 'idle'
  const given = () => engine.last.sent.map(({ text }) => text)
  const ends = async () =>
    (await world.eventsOf(id)).flatMap((event) => (event.type === 'turn_completed' ? event.subtype : []))
  return { ...world, session, say, isIdle, given, ends }
}

t.test('of messages that come at once and do not wait one begins a turn', async (t) => {
  const { journal, say, given, isIdle, engine } = await build(t)
  journal.hold()
  const first = say('one', 'reject')
  await t.rejects(say('two', 'reject'), { code: 'SG_ERR_SESSION_BUSY' }, 'the first one is being kept')
  journal.release()
  await first
  await until(() => given().length === 1)
  engine.last.complete()
  await until(isIdle)
  await say('three', 'reject')
  await until(() => given().length === 2)
  t.same(given(), ['one', 'three'])
})

t.test('a message that was refused keeps no other one out', async (t) => {
  const { journal, say, given } = await build(t)
  journal.broken = true
  await t.rejects(say('one', 'reject'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.broken = false
  await say('two', 'reject')
  await until(() => given().length === 1)
  t.same(given(), ['two'])
})

t.test('a message that interrupts ends the turn of one that is being kept', async (t) => {
  const { journal, say, given, ends } = await build(t)
  journal.hold()
  const both = [say('one'), say('two', 'interrupt')]
  await turns()
  journal.release()
  await Promise.all(both)
  await until(() => given().includes('two'))
  t.same(await ends(), ['interrupted'])
})

t.test('a message that interrupts is not interrupted itself when the turn before it ends meanwhile', async (t) => {
  const { journal, say, given, ends, engine, isIdle } = await build(t)
  await say('one')
  await until(() => given().length === 1)
  journal.hold()
  const second = say('two', 'interrupt')
  await turns()
  engine.last.complete()
  await turns()
  journal.release()
  await second
  await until(() => given().length === 2)
  await turns()
  engine.last.complete()
  await until(isIdle)
  t.same(await ends(), ['success', 'success'])
})

t.test('an interrupt is not for the turn of a message that waited', async (t) => {
  const { say, given, ends, engine, registry, session } = await build(t, {
    script: {
      settle: (runner) => runner.complete(),
    },
  })
  await say('one')
  await until(() => given().length === 1)
  await engine.last.defer('e1')
  await say('two')
  await registry.send(session.id, { type: 'interrupt' })
  await until(() => given().length === 2)
  await turns()
  t.same(await ends(), ['success'], 'the turn ended with what it waited for')
  t.equal(session.status, 'running')
})

t.test('a message that interrupts ends the turn of a session that is parked in the same moment', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, journal, clock } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const session = await registry.open(id, UNLIMITED)
  const attachment = session.attach(new FakeSink(), {})
  void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
  await session.durable()
  session.detach(attachment)
  // the message is kept, and what it begins is not
  journal.hold(1)
  const said = registry.send(id, { type: 'user_message', text: 'stop', whenBusy: 'interrupt' })
  await turns()
  await clock.advance(2_000)
  journal.release()
  await said
  await until(() => engine.last.sent.some(({ text }) => text === 'stop'))
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
})

t.test('a message that was taken is not refused because the turn before it does not end', async (t) => {
  const interrupt = async () => {
    throw new Error('not now')
  }
  const { say, given, engine, isIdle } = await build(t, { script: { interrupt } })
  await say('one')
  await until(() => given().length === 1)
  await say('two', 'interrupt')
  engine.last.complete()
  await until(() => given().length === 2)
  engine.last.complete()
  await until(isIdle)
  t.same(given(), ['one', 'two'])
})

t.test('an interrupt while the engine starts ends the turn that it would begin with', async (t) => {
  let started = () => {}
  const start = async (runner: ScriptedRunner) => {
    await new Promise<void>((resolve) => (started = resolve))
    runner.init()
  }
  const { registry, engine, eventsOf, again } = await buildJournaled(t, { script: { start } })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'one' })
  await registry.send(id, { type: 'user_message', text: 'two' })
  await registry.send(id, { type: 'user_message', text: 'three', whenBusy: 'interrupt' })
  await registry.send(id, { type: 'interrupt' })
  started()
  await until(() => engine.last.sent.length === 1)
  t.same(engine.last.sent[0]?.text, 'one', 'what was said to come first was the next, and was interrupted')
  const interrupted = (await eventsOf(id)).filter(({ type }) => type === 'turn_completed')
  t.match(interrupted, [{ subtype: 'interrupted', isError: false, numTurns: 0 }], 'as a turn that has begun ends then')

  const { registry: next, engine: nextEngine } = await again()
  await until(() => nextEngine.runners.length > 0)
  started()
  await until(() => nextEngine.last.sent.length === 1)
  t.same(nextEngine.last.sent[0]?.text, 'two', 'nor is it begun by the next process')
  await next.end(id)
})

t.test('an interrupt while an engine cannot be started ends what is tried again', async (t) => {
  const script: Script = {}
  const { registry, engine, clock, isIdle, session, say, given } = await build(t, { script })
  await say('one')
  await until(() => given().length === 1)
  script.start = () => Promise.reject(new Error('no agent'))
  Object.assign(engine.last, { isSpent: true })
  await say('two')
  engine.last.complete()
  await until(() => /is tried again/.test(session.facts.statusDetail ?? ''))
  await registry.send(session.id, { type: 'interrupt' })
  await until(isIdle)
  await clock.advance(1_000)
  await until(() => session.facts.statusDetail === undefined, 'nothing is tried again')
  delete script.start
  const { length } = engine.runners
  await clock.advance(3_600_000)
  await session.durable()
  t.equal(engine.runners.length, length)
  await say('three')
  await until(() => given().length === 1)
  t.same(given(), ['three'])
})

t.test('an interrupt while an engine is started again ends the turn that it would begin with', async (t) => {
  let started = () => {}
  const start = async (runner: ScriptedRunner) => {
    await new Promise<void>((resolve) => (started = resolve))
    runner.init()
  }
  const { registry, again } = await buildJournaled(t, { script: { start } })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'one' })
  await (await registry.open(id, UNLIMITED)).durable()
  const next = await again()
  await until(() => next.engine.runners.length === 1)
  await next.registry.send(id, { type: 'interrupt' })
  t.match(await eventsOf(next, id), [{}, { type: 'turn_completed', subtype: 'interrupted' }, { status: 'idle' }])
  started()
  await next.registry.send(id, { type: 'user_message', text: 'two' })
  await until(() => next.engine.last.sent.length === 1)
  t.equal(next.engine.last.sent[0]?.text, 'two')
  await next.registry.end(id)
})

t.test('a run that is interrupted while its engine is built does not begin with that', async (t) => {
  const engine = new ScriptedEngine()
  const { promise: built, resolve: build } = deferred()
  const { registry } = await buildJournaled(t, {
    createEngineRunner: async (context) => {
      await built
      return engine.create(context)
    },
  })
  const created = registry.create({ cwd: SOME_CWD, prompt: 'one' }, { id: 'run', jobId: 'job' })
  await until(() => registry.has('run'))
  await registry.send('run', { type: 'interrupt' })
  build()
  await created
  t.equal((await registry.get('run'))?.status, 'idle')
  await registry.send('run', { type: 'user_message', text: 'two' })
  await until(() => engine.last.sent.length > 0)
  t.match(engine.last.sent, [{ text: 'two' }])
})

t.test('an interrupt is not for a message that comes after it, whatever else is being kept', async (t) => {
  const { journal, session, say, given, engine, ends } = await build(t)
  journal.hold()
  const renamed = session.accept({ type: 'title', title: 'new' })
  const interrupted = session.handle({ type: 'interrupt' })
  const said = say('one')
  journal.release()
  await Promise.all([renamed, interrupted, said])
  t.same(await ends(), [])
  await until(() => given().length === 1)
  engine.last.complete()
  await until(async () => (await ends()).length === 1)
})
