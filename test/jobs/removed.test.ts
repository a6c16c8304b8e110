import t from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'

for (const status of ['running', 'parked'] as const)
  t.test(
    `the end of a ${status} job whose session is removed is written before that is gone, and a crash between takes it not back`,
    async (t) => {
      const world = await buildJournaled(t, { queue: {}, script: native, parking: { parkDelayMs: 0 } })
      const { gateway, engine, registry, journal } = world
      const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, attempts: 2 })
      await until(() => engine.runners[0]?.sent.length === 1)
      if (status === 'parked') await engine.last.defer('e1')
      await until(async () => (await gateway.queue!.get(id))?.status === status)
      const sessionId = (await gateway.queue!.get(id))!.sessionId!
      await until(async () => (await registry.get(sessionId))?.status === status)
      // what is decided is written, and nothing of the session is gone
      journal.hold(1)
      await registry.close(sessionId, 'client')
      await until(async () => (await gateway.queue!.get(id))?.status === 'canceled')
      t.equal(await registry.get(sessionId), undefined)

      world.kill()
      journal.release()
      const { gateway: next, registry: after } = await world.again()
      await until(async () => (await after.get(sessionId)) === undefined, 'the removal')
      t.match(await next.queue!.get(id), { status: 'canceled', attempt: 1, error: undefined })
      t.equal(engine.runners.length, 1)
    },
  )
