import t from 'tap'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf } from '../fixtures/journaled.js'

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
