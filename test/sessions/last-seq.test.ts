import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { eventsPage } from '../../src/sessions/log/events-page.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled } from '../fixtures/journaled.js'

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
