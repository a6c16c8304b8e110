import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'

for (const others of [[], ['third']])
  t.test(
    `a message whose turn begins as the gateway is shut down is the next engine's${others.length > 0 ? ', before the one that waits' : ''}`,
    async (t) => {
      let goesOn = true
      const script = { send: (runner: { complete(): void }) => void (goesOn && runner.complete()) }
      const { registry, engine, journal, gateway, again } = await buildJournaled(t, { script })
      const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
      await until(() => registry.here(id)?.status === 'idle')
      await registry.durable(id)
      const session = await registry.open(id, UNLIMITED)
      // that it was said is kept, and that its turn begins is not yet
      journal.hold(1 + others.length)
      const said = ['second', ...others].map((text) => registry.send(id, { type: 'user_message', text, id: text }))
      await until(() => session.inTurn && (session.queued?.length ?? 0) === others.length)
      t.equal(engine.last.sent.length, 1)
      const closed = gateway.close()
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      journal.release()
      await Promise.all(said)
      await closed
      t.equal(engine.last.sent.length, 1, 'no engine was given it')

      goesOn = false
      const next = await again()
      await until(() => next.engine.runners.length === 1 && next.engine.last.sent.length === 1, 'the message')
      next.engine.last.complete()
      await until(() => next.registry.here(id)?.status === 'idle' || next.engine.last.sent.length > 1)
      for (const _ of others) next.engine.last.complete()
      await until(() => next.registry.here(id)?.status === 'idle')
      t.same(
        next.engine.last.sent,
        ['second', ...others].map((text) => ({ text, commandId: text })),
      )
      const told = (await eventsOf(next, id)).flatMap((event) =>
        event.type === 'user_message' ? [event.message.content] : event.type === 'turn_completed' ? event.subtype : [],
      )
      t.equal(told.filter((one) => one === 'second').length, 1, 'told once')
      t.notOk(told.includes('interrupted'))
    },
  )
