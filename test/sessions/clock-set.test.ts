import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, echo } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'

const HOURS = 3 * 3_600_000
const parkDelayMs = 2_000
const idleReleaseMs = 60_000

t.test('the engine of an idle session goes after its while, although the clock was set meanwhile', async (t) => {
  for (const byMs of [-HOURS, HOURS]) {
    const { registry, engine, clock } = await buildGateway(t, {
      ...{ idleReleaseMs },
      script: { send: (runner) => runner.complete() },
    })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    const session = await registry.open(id, UNLIMITED)
    const attachment = session.attach(new FakeSink(), {})
    clock.set(byMs)
    session.detach(attachment)
    await clock.advance(idleReleaseMs - 1)
    t.notOk(engine.last.closed, 'its while is not over')
    await clock.advance(1)
    await until(() => engine.last.closed, 'the engine gone')
  }
})

t.test('a session that waits parks after its delay, although the clock was set meanwhile', async (t) => {
  for (const byMs of [-HOURS, HOURS]) {
    const { registry, engine, clock } = await buildGateway(t, { parking: { parkDelayMs }, script: native })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    const session = await registry.open(id, UNLIMITED)
    const attachment = session.attach(new FakeSink(), {})
    session.detach(attachment)
    clock.set(byMs)
    await engine.last.defer('e1')
    await clock.advance(parkDelayMs - 1)
    t.equal((await registry.get(id))?.status, 'running', 'its delay is not over')
    await clock.advance(1)
    await until(async () => (await registry.get(id))?.status === 'parked', 'the park')
  }
})

t.test(
  'a job that waits while somebody looks is parked after its delay, although the clock was set meanwhile',
  async (t) => {
    for (const byMs of [-HOURS, HOURS]) {
      const { gateway, registry, engine, clock } = await buildGateway(t, {
        ...{ queue: {}, parking: { parkDelayMs }, script: native },
      })
      const queue = gateway.queue!
      const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
      await until(() => engine.runners[0]?.sent.length === 1)
      const session = await registry.open((await queue.get(id))!.sessionId!, UNLIMITED)
      session.attach(new FakeSink(), {})
      await engine.last.defer('e1')
      clock.set(byMs)
      await registry.send(session.id, { type: 'set_model', model: 'another' })
      await clock.advance(parkDelayMs - 1)
      t.equal((await queue.get(id))?.status, 'running', 'its delay is not over')
      await clock.advance(1)
      await until(async () => (await queue.get(id))?.status === 'parked', 'the park')
    }
  },
)

t.test(
  'a session that nobody looks at any more leaves the memory, although the clock was set back meanwhile',
  async (t) => {
    const { registry, clock } = await buildJournaled(t, { idleReleaseMs, script: echo() })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    const session = await registry.open(id, UNLIMITED)
    clock.set(-HOURS)
    await clock.advance(2 * idleReleaseMs)
    t.not(await registry.open(id, UNLIMITED), session, 'it is read from the journal')
  },
)
