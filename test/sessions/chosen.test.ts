import t, { type Test } from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

/** A session that has had a turn, so that there is a snapshot to go on from; its later turns last. */
async function build(t: Test, script: Script = {}) {
  const world = await buildJournaled(t, { script })
  const { registry, engine, again } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'one' })
  await until(() => engine.runners[0]?.sent.length === 1)
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
  await (await registry.open(id, UNLIMITED)).durable()
  const say = (text: string, at = registry) => at.send(id, { type: 'user_message', text })
  /** What the engine of the next process changed to before it was given its message. */
  const changedTo = async () => {
    const next = await again()
    const { lastSeq } = (await next.registry.get(id))!
    await say('three', next.registry)
    await until(() => next.engine.last.sent.length === 1)
    const events = (await eventsOf(next, id)).filter(({ seq }) => seq > lastSeq)
    const types = events.map(({ type }) => type)
    const upTo = events.slice(0, types.indexOf('user_message'))
    await next.registry.end(id)
    return upTo.flatMap((event) =>
      event.type === 'permission_mode_changed' ? event.mode : event.type === 'model_changed' ? event.model : [],
    )
  }
  const choose = async () => {
    await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
    await registry.send(id, { type: 'set_model', model: 'other' })
  }
  return { ...world, id, say, choose, changedTo }
}

t.test('what is chosen in a turn that a crash cuts off is what the next engine is told', async (t) => {
  const { say, choose, changedTo, engine } = await build(t)
  await say('two')
  await until(() => engine.last.sent.length === 2)
  await choose()
  t.same(await changedTo(), ['dontAsk', 'other'])
})

t.test('what the snapshot has is not told again', async (t) => {
  const { say, choose, changedTo, engine, registry, id } = await build(t)
  await choose()
  await say('two')
  await until(() => engine.last.sent.length === 2)
  await registry.send(id, { type: 'set_model', model: 'third' })
  t.same(await changedTo(), ['third'], 'the mode may have been changed by the engine itself since')
})

t.test('one that is changed while a turn comes to its end is not forgotten either', async (t) => {
  const { say, changedTo, engine, registry, id } = await build(t)
  await say('two')
  await until(() => engine.last.sent.length === 2)
  const { last } = engine
  const changed = last.setPermissionMode.bind(last)
  last.setPermissionMode = async (mode) => {
    last.complete()
    await until(() => last.sent.length === 3)
    await changed(mode)
  }
  await registry.send(id, { type: 'user_message', text: 'queued' })
  await registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
  t.same(await changedTo(), ['dontAsk'])
})

t.test('an engine that refuses the mode is not gone on with', async (t) => {
  const { say, choose, engine, again, id } = await build(t)
  await say('two')
  await until(() => engine.last.sent.length === 2)
  await choose()
  const refuse = () => Promise.reject(new Error('not this one'))
  const script: Script = {
    start(runner) {
      runner.setPermissionMode = refuse
      runner.init()
    },
  }
  const next = await again({ script })
  await t.rejects(say('three', next.registry), { code: 'SG_ERR_ENGINE_START' })
  t.equal(next.engine.last.sent.length, 0)
  t.equal((await next.registry.get(id))?.status, 'idle')
})

t.test('a change that waits for another one is made by the next engine when this one goes meanwhile', async (t) => {
  const { registry, engine, id, say } = await build(t)
  await say('two')
  const { last } = engine
  await until(() => last.sent.length === 2)
  const { promise: answered, resolve: answer } = deferred()
  let isAsked = false
  last.setModel = () => {
    isAsked = true
    return answered
  }
  const first = registry.send(id, { type: 'set_model', model: 'other' })
  const second = registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' })
  await until(() => isAsked)
  Object.assign(last, { isSpent: true })
  last.complete()
  answer()
  await Promise.all([first, second])
  t.equal(engine.runners.length, 2)
  t.match(await registry.get(id), { status: 'idle', model: 'other', permissionMode: 'dontAsk' })
})

for (const isBuilt of [true, false])
  t.test(
    `a change that comes while the engine is being built waits until it is ${isBuilt ? 'there' : 'given up'}`,
    async (t) => {
      const { promise: gate, resolve: go } = deferred()
      const { gateway, registry, engine } = await buildGateway(t, {
        queue: {},
        async createEngineRunner(context) {
          await gate
          if (!isBuilt) throw new Error('not installed')
          return engine.create(context)
        },
      })
      const job = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
      await until(() => registry.unended().length === 1)
      const { id } = registry.unended()[0]!
      t.equal(registry.here(id)?.status, 'starting')
      const changes = [
        registry.send(id, { type: 'set_model', model: 'other' }),
        registry.send(id, { type: 'set_permission_mode', mode: 'dontAsk' }),
      ]
      const outcomes = Promise.allSettled(changes)
      // more than enough for both to be refused
      await turns()
      go()
      if (isBuilt) {
        t.match(await outcomes, [{ status: 'fulfilled' }, { status: 'fulfilled' }])
        t.match(registry.here(id), { model: 'other', permissionMode: 'dontAsk' })
      } else {
        const refused = { status: 'rejected', reason: { code: 'SG_ERR_SESSION_ENDED' } }
        t.match(await outcomes, [refused, refused])
        await until(async () => (await gateway.queue!.get(job.id))?.status === 'failed')
      }
    },
  )
