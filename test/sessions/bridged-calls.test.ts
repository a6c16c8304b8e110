import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'

t.test('a bridged call ends with the engine that made it', async (t) => {
  const { registry, engine } = await buildGateway(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  const runner = engine.last
  await until(() => runner.sent.length === 1)
  const session = await registry.open(id, UNLIMITED)
  const sink = new FakeSink()
  session.attach(sink, {})
  const called = runner.context.bridge.execute({ executionId: 'e1', toolName: 'pick', input: {} })
  await until(() => sink.frames.some(({ type }) => type === 'tool_call_request'))
  Object.assign(runner, { isSpent: true })
  runner.complete({ subtype: 'error_during_execution', isError: true })
  await until(() => sink.frames.some(({ type }) => type === 'tool_call_canceled'))
  t.match(await called, { status: 'failed', reason: 'withdrawn' })
  t.same(session.bridge.pending, [], 'nobody who attaches now is asked for it')
  await session.handle({ type: 'user_message', text: 'again' })
  await until(() => engine.last !== runner && engine.last.sent.length === 1, 'the next engine')
})
