import t from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'

const script = {
  capabilities: { parking: 'native' as const },
  send: (runner: { complete(): void }) => runner.complete(),
}

async function idle(t: Parameters<typeof buildJournaled>[0]) {
  const world = await buildJournaled(t, { script })
  const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await world.registry.get(id))?.status === 'idle')
  await world.registry.durable(id)
  return { ...world, id }
}

t.test('DELETE is said once it is decided: a kill before the journal has carried it out leaves nothing', async (t) => {
  const { registry, journal, id, kill, again } = await idle(t)
  const { lastSeq } = (await registry.get(id))!
  // the decision passes
  journal.hold(1)
  const closed = await registry.close(id, 'client')
  t.equal(closed.status, 'closed')
  t.ok(closed.lastSeq > lastSeq, 'its end is the last that it has')
  t.equal(await registry.get(id), undefined)
  kill()
  journal.hold(0)
  const left = await journal.get(id)
  t.ok(left, 'it is there')
  journal.release()
  const { registry: next } = await again()
  t.equal(await next.get(id), undefined)
  t.equal(await journal.get(id), undefined)
})

t.test('a removal that the journal refuses once it is decided is tried until it is done', async (t) => {
  const { registry, clock, journal, id } = await idle(t)
  const remove = journal.remove.bind(journal)
  let refusals = 0
  journal.remove = async (...removal) => {
    if (++refusals < 4) throw new Error('no space left on device')
    await remove(...removal)
  }
  t.match(await registry.close(id, 'client'), { status: 'closed' })
  await until(async () => (await journal.get(id)) === undefined || void (await clock.advance(1_000)), 'gone')
  t.equal(refusals, 4)
  await until(() => registry.isWritable, 'that nothing is wrong any more')
})

t.test('the end of a session that fails while its removal waits is told, also when that is refused', async (t) => {
  const told: string[] = []
  const notifications = { onNotification: ({ type }: SessionNotification) => void told.push(type) }
  const { registry, clock, journal, engine } = await buildJournaled(t, { script, notifications })
  const { id } = await registry.create({ cwd: SOME_CWD })
  journal.hold()
  const removal = registry.close(id, 'client')
  removal.catch(() => {})
  await new Promise(setImmediate)
  engine.last.host.emit({ type: 'session_error', message: 'it broke' })
  await clock.advance(PATIENCE_MS)
  await t.rejects(removal, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.release()
  await until(async () => (await journal.get(id))?.state.info.status === 'failed', 'its end, kept')
  await until(() => told.includes('session_closed'), 'word of its end')
  t.same(told, ['session_error', 'session_closed'])
})

t.test('and as what it was, when the removal is done', async (t) => {
  const told: SessionNotification[] = []
  const notifications = { onNotification: (one: SessionNotification) => void told.push(one) }
  const { registry, journal, engine } = await buildJournaled(t, { script, notifications })
  const { id } = await registry.create({ cwd: SOME_CWD })
  journal.hold()
  const removal = registry.close(id, 'client')
  await new Promise(setImmediate)
  engine.last.host.emit({ type: 'session_error', message: 'it broke' })
  journal.release()
  t.match(await removal, { status: 'failed' })
  await until(() => told.some(({ type }) => type === 'session_closed'), 'word of its end')
  t.match(told, [{ type: 'session_error' }, { type: 'session_closed', reason: 'error' }])
})

t.test(
  'the end of a session is told as it is once its removal is decided, with the turn that ended meanwhile',
  async (t) => {
    const told: SessionNotification[] = []
    const notifications = { onNotification: (one: SessionNotification) => void told.push(one) }
    const { registry, journal, engine } = await buildJournaled(t, { notifications })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
    await until(() => engine.last.sent.length === 1)
    await registry.durable(id)
    journal.hold()
    const removal = registry.close(id, 'client')
    await new Promise(setImmediate)
    engine.last.complete()
    journal.release()
    t.match(await removal, { status: 'closed', numTurns: 1 })
    await until(() => told.some(({ type }) => type === 'session_closed'), 'word of its end')
    t.match(told.at(-1), { type: 'session_closed', reason: 'client', session: { status: 'closed', numTurns: 1 } })
  },
)

for (const isDone of [false, true])
  t.test(
    `a kill after a refusal, ${isDone ? 'with the write done all the same' : 'before the write was done'}: one outcome, and asking again ends in it`,
    async (t) => {
      const { registry, clock, journal, id, kill, again } = await idle(t)
      journal.hold()
      const removal = registry.close(id, 'client')
      removal.catch(() => {})
      await new Promise(setImmediate)
      await clock.advance(PATIENCE_MS)
      await t.rejects(removal, { code: 'SG_ERR_STORE_UNAVAILABLE', message: /unless the gateway ends/ })
      t.match(await registry.get(id), { status: 'idle' }, 'here nothing of it is done')
      kill()
      journal.broken = !isDone
      journal.release()
      await new Promise(setImmediate)
      journal.broken = false
      const { registry: next } = await again()
      t.equal((await next.get(id))?.status, isDone ? undefined : 'idle')
      if (!isDone) t.match(await next.close(id, 'client'), { status: 'closed' })
      await t.rejects(next.open(id, UNLIMITED), { code: 'SG_ERR_SESSION_NOT_FOUND' })
      t.equal(await journal.get(id), undefined)
    },
  )

t.test('what is said to a session whose removal hangs is kept, or refused', async (t) => {
  const { registry, clock, journal, id, engine } = await idle(t)
  journal.hold()
  const removal = registry.close(id, 'client')
  removal.catch(() => {})
  await new Promise(setImmediate)
  const message = registry.send(id, { type: 'user_message', text: 'second' })
  let isAnswered = false
  message.catch(() => (isAnswered = true))
  await until(async () => isAnswered || void (await clock.advance(1_000)), 'an answer')
  await t.rejects(removal, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await t.rejects(message, { code: 'SG_ERR_STORE_UNAVAILABLE' })
  journal.release()
  await clock.advance(60_000)
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['first'],
  )
  await registry.send(id, { type: 'user_message', text: 'third' })
  await until(() => engine.last.sent.length === 2)
})

t.test('the end of a session that is removed is told where what is told has a write of its own', async (t) => {
  const told: string[] = []
  const notifications = { onNotification: ({ type }: SessionNotification) => void told.push(type) }
  const { oneWrite: _, ...storage } = createMemoryStorage()
  const { registry } = await buildGateway(t, { script, storage, notifications })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.close(id, 'client')
  await until(() => told.length > 0, 'word of its end')
  t.same(told, ['session_closed'])
})
