import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { eventsPage } from '../../src/sessions/log/events-page.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { buildParked, native, ok } from '../fixtures/parked.js'

const echo = {
  capabilities: { parking: 'native' as const },
  send: (runner: {
    delta(text: string, uuid: string): void
    say(text: string, uuid: string): void
    complete(): void
  }) => {
    runner.delta('he', 'm1')
    runner.say('hello', 'm1')
    runner.complete()
  },
}

t.test('nothing looks new after a restart, or many, that is not new', async (t) => {
  const { registry, again } = await buildJournaled(t, { script: echo })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.durable(id)
  const { lastSeq } = (await registry.get(id))!

  for (let restart = 1; restart <= 3; restart++) {
    const { registry: next } = await again()
    t.equal((await next.get(id))?.lastSeq, lastSeq)
    t.match(await next.list(), [{ lastSeq }])
    const session = await next.open(id, UNLIMITED)
    const page = JSON.parse((await eventsPage(session, {})).toString())
    t.match({ lastSeq: page.lastSeq, newest: page.events.at(-1).seq }, { lastSeq, newest: lastSeq })
    const sink = new FakeSink()
    session.attach(sink, { afterSeq: lastSeq })
    await until(() => sink.frames.some(({ type }) => type === 'synced'))
    t.match(sink.frames, [
      { type: 'attached', truncated: false, session: { lastSeq } },
      { type: 'synced', seq: lastSeq },
    ])
    t.equal((await next.get(id))?.lastSeq, lastSeq)
  }

  const { registry: next } = await again()
  await next.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await next.get(id))?.status === 'idle')
  await next.durable(id)
  const session = await next.open(id, UNLIMITED)
  const page = JSON.parse((await eventsPage(session, { afterSeq: lastSeq })).toString())
  t.ok(page.events[0].seq > lastSeq, 'and numbers go on above all that may have been used')
  t.equal(page.lastSeq, page.events.at(-1).seq)
  t.equal((await next.get(id))?.lastSeq, page.lastSeq)
})

t.test('an ended session of an earlier process ends the streams of who reads it through', async (t) => {
  const { registry, again } = await buildJournaled(t, { script: echo })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await registry.send(id, { type: 'close' })
  const { registry: next } = await again()
  const sink = new FakeSink()
  ;(await next.open(id, UNLIMITED)).attach(sink, { afterSeq: (await next.get(id))!.lastSeq })
  await until(() => sink.closed)
  t.match(sink.closed, { code: 1000 })
})

t.test('a parked session says what its log holds, too', async (t) => {
  const { registry, engine, again, gateway } = await buildJournaled(t, {
    script: { capabilities: { parking: 'native' } },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await registry.durable(id)
  const { lastSeq } = (await registry.get(id))!
  for (let restart = 1; restart <= 2; restart++) {
    const { registry: next } = await again()
    t.equal((await next.get(id))?.lastSeq, lastSeq)
    t.equal((await next.open(id, UNLIMITED)).info().lastSeq, lastSeq, 'looked at, too')
  }
  await gateway.close()
})

t.test(
  'a session of records whose wake a crash cut off shows nothing as new either, and uses no number twice',
  async (t) => {
    const { store, registry, executions, id, park, engine, clock } = await buildParked(t)
    await park()
    // the engine goes on with its result, says something, and its process dies
    await executions.submit('e1', ok)
    await until(() => engine.runners.length === 2)
    engine.last.say('lost with the process')
    const used = (await registry.get(id))!.lastSeq
    const { log } = (await store.list())[0]!
    const kept = JSON.parse(log.events.split('\n').at(-1)!).seq as number
    const { gateway: next } = await buildGateway(t, {
      parking: { store },
      clock,
      script: { ...native, start: () => new Promise(() => {}) },
    })
    t.equal((await next.registry.get(id))?.lastSeq, kept, 'listed')
    t.ok(kept <= used)
    const sink = new FakeSink()
    ;(await next.registry.open(id, UNLIMITED)).attach(sink, {})
    await until(() => sink.frames.some(({ type }) => type === 'synced'))
    const told = sink.events.at(-1)!.seq
    t.match(sink.frames.at(-1), { type: 'synced', seq: told }, 'synced is what was sent')
  },
)
