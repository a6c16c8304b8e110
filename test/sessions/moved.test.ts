import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import type { ParkedSessionRecord } from '../../src/sessions/kept/store.js'
import { eventsPage } from '../../src/sessions/log/events-page.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildParked, native, ok, someRecord } from '../fixtures/parked.js'

/** What a store has at the moment in which something came in for a session, as a crash would leave it. */
class StoreThatEnds extends MemorySessionStore {
  readonly left = new MemorySessionStore()

  override async save(record: ParkedSessionRecord): Promise<void> {
    await super.save(record)
    if (record.hasNews && !(await this.left.get(record.id))) await this.left.save(record)
  }
}

t.test('a session that is moved to a storage after a crash gives no number twice', async (t) => {
  const store = new StoreThatEnds()
  const before = await buildParked(t, { parking: { store } })
  const { id, park } = before
  await park()
  const first = new FakeSink()
  const session = await before.registry.open(id, UNLIMITED)
  session.attach(first, {})
  await before.executions.submit('e1', ok)
  for (const text of ['a', 'b', 'c']) before.engine.last.say(text)
  await until(() => first.events.filter(({ type }) => type === 'assistant_message').length === 3, 'what it said')
  const seen = first.events.at(-1)!.seq
  const { epoch } = session.log

  const after = await buildGateway(t, {
    storage: createMemoryStorage(),
    parking: { store: store.left },
    script: native,
  })
  await until(async () => (await after.registry.get(id))?.status === 'running', 'that it goes on')
  after.engine.last.say('after the crash')
  const again = new FakeSink()
  const moved = await after.registry.open(id, UNLIMITED)
  moved.attach(again, { afterSeq: seen, epoch })
  await until(() => again.events.some(({ type }) => type === 'assistant_message'), 'what it says now')
  t.match(again.frames[0], { type: 'attached', truncated: true, replayingFrom: 0 })
  t.not(moved.log.epoch, epoch)
  const [said] = again.events.filter(({ type }) => type === 'assistant_message')
  t.ok(said!.seq > seen, `${said!.seq} after ${seen}`)
  t.same(await store.left.list(), [])
})

t.test(
  'a session whose removal was confirmed before a crash is not moved to a storage, and its end is told',
  async (t) => {
    const store = new MemorySessionStore()
    const executions = [{ executionId: 'e1', toolName: 'x' }]
    await store.save(someRecord('removed', { executions, removal: 'client' }))
    const told: unknown[] = []
    const { gateway, registry } = await buildGateway(t, {
      ...{ storage: createMemoryStorage(), parking: { store }, script: native },
      notifications: { onNotification: ({ type, sessionId, reason }) => void told.push([type, sessionId, reason]) },
    })
    await until(() => told.length > 0, 'its end')
    t.same(told, [['session_closed', 'removed', 'client']])
    t.same(await registry.list(), [])
    await t.rejects(gateway.executions.submit('e1', ok), { code: 'SG_ERR_EXECUTION_NOT_FOUND' })
    t.same(await store.list(), [])
  },
)

t.test('a session that is moved to a storage says which of its events are there, also after a restart', async (t) => {
  const store = new MemorySessionStore()
  const eventLog = { maxEvents: 10 }
  const before = await buildParked(t, { parking: { store }, eventLog })
  for (let n = 0; n < 30; n++) before.engine.last.say(`${n}`)
  await before.park()
  await before.gateway.close()
  const { oldestSeq, events } = (await store.get(before.id))!.log
  t.ok(oldestSeq > 20)
  const storage = createMemoryStorage()
  const attached = { type: 'attached', truncated: true, oldestSeq, replayingFrom: oldestSeq - 1 }
  for (const parking of [{ store }, {}]) {
    const { gateway, registry } = await buildGateway(t, { storage, parking, eventLog, script: native })
    const session = await registry.open(before.id, UNLIMITED)
    const sink = new FakeSink()
    session.attach(sink, {})
    await until(() => sink.frames.at(-1)?.type === 'synced', 'what is there')
    t.match(sink.frames[0], attached)
    t.same(sink.events, JSON.parse(`[${events.replaceAll('\n', ',')}]`))
    t.match(JSON.parse(String(await eventsPage(session, {}))), {
      truncated: true,
      events: { length: sink.events.length },
    })
    t.match(session.clients.resolve({ afterSeq: oldestSeq - 1 }), { truncated: false })
    await gateway.close()
  }
})
