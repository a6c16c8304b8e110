import t from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import type { Script } from '../fixtures/scripted-engine.js'

t.test('what the agent said before a message, after its turn, stands before that message in the log', async (t) => {
  const world = await buildGateway(t)
  const { registry, engine } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1, 'the prompt')
  const { last: runner } = engine
  let asked = 0
  Object.assign(runner, { tellRest: () => ++asked && runner.say('afterwards') })
  await registry.send(id, { type: 'user_message', text: 'meanwhile' })
  t.equal(asked, 0, 'in a turn what it says is no rest')
  runner.complete()
  await until(() => runner.sent.length === 2, 'the second message')
  runner.complete()
  await until(async () => (await registry.get(id))?.status === 'idle', 'the end of the turn')
  await registry.send(id, { type: 'user_message', text: 'next' })
  const said = (await eventsOf(world, id)).flatMap((event) =>
    event.type === 'user_message' || event.type === 'assistant_message' ? JSON.stringify(event.message.content) : [],
  )
  t.same(said.slice(-2), ['[{"type":"text","text":"afterwards"}]', '"next"'])
})

t.test('an engine that fails at it takes the message all the same', async (t) => {
  const { registry, engine } = await buildGateway(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  await until(async () => (await registry.get(id))?.status === 'idle', 'the start')
  const { last: runner } = engine
  Object.assign(runner, {
    tellRest: () => {
      throw new Error('broken')
    },
  })
  await registry.send(id, { type: 'user_message', text: 'next' })
  await until(() => runner.sent.length === 1, 'the message')
})

t.test('a turn that the engine took by itself is not the one of a message that it is not given yet', async (t) => {
  const world = await buildJournaled(t)
  const { registry, engine, journal } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1, 'the prompt')
  const { last: runner } = engine
  runner.complete()
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  journal.hold(1)
  const said = registry.send(id, { type: 'user_message', text: 'next' })
  await until(() => session.inTurn, 'its turn')
  t.equal(runner.sent.length, 1, 'it is kept first')
  runner.complete({ result: 'what was done in the background' })
  await new Promise(setImmediate)
  t.equal(session.status, 'running')
  journal.release()
  await said
  await until(() => runner.sent.length === 2, 'the message')
  t.equal(session.status, 'running')
  runner.complete({ result: 'the answer' })
  t.equal(session.status, 'idle')
})

/** Engines that have their agent's earlier session to tell, unless they go on from a snapshot, which they do not give. */
const resuming: Script = {
  capabilities: { resume: true },
  start: (runner) => {
    runner.init()
    if (runner.context.restore || runner.context.config.resume === undefined) return
    const common = { parentToolUseId: null, replay: true }
    const [role, content] = ['user', 'earlier'] as const
    runner.host.emit({ type: 'user_message', message: { role, content }, uuid: 'u', ...common })
  },
  snapshot: () => {
    throw new Error('There is none.')
  },
}
const told = (events: readonly SessionEvent[]) =>
  events.flatMap((event) => (event.type === 'user_message' ? [event.message.content] : []))

t.test(
  'what was said in the session that is resumed is told once, though no engine after a crash knows more',
  async (t) => {
    const world = await buildJournaled(t, { script: resuming })
    const { id } = await world.registry.create({ cwd: SOME_CWD, resume: 'theirs' })
    await until(async () => (await world.registry.get(id))?.status === 'idle', 'the start')
    const session = await world.registry.open(id, UNLIMITED)
    await session.durable()
    for (const text of ['one', 'two']) {
      const next = await world.again()
      await next.registry.send(id, { type: 'user_message', text })
      await until(() => next.engine.last.sent.length === 1, 'the message')
      t.equal(next.engine.last.context.config.resume, 'theirs', 'the engine goes on from there')
      next.engine.last.complete()
      await until(async () => (await next.registry.get(id))?.status === 'idle', 'the end of the turn')
      await (await next.registry.open(id, UNLIMITED)).durable()
      t.equal(told(await eventsOf(next, id)).filter((content) => content === 'earlier').length, 1)
    }
  },
)

t.test('what no engine could tell of the session that is resumed, the next one tells', async (t) => {
  let isDead = true
  const script: Script = { ...resuming, start: (runner) => (isDead ? runner.init() : resuming.start!(runner)) }
  const world = await buildJournaled(t, { script })
  const { id } = await world.registry.create({ cwd: SOME_CWD, resume: 'theirs' })
  await until(async () => (await world.registry.get(id))?.status === 'idle', 'the start')
  await (await world.registry.open(id, UNLIMITED)).durable()
  isDead = false
  const next = await world.again()
  await next.registry.send(id, { type: 'user_message', text: 'next' })
  await until(() => next.engine.last.sent.length === 1, 'the message')
  t.same(told(await eventsOf(next, id)).sort(), ['earlier', 'next'])
})
