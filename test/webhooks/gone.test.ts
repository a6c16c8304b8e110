import t from 'tap'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

t.test('a receiver that answered 410 is left alone by the next process too, until its URL changes', async (t) => {
  const sink = await WebhookSink.start(t)
  const storage = createMemoryStorage()
  const script = { send: (runner: { complete(): void }) => runner.complete() }
  const warned: unknown[] = []
  const logger = { trace() {}, debug() {}, info() {}, error() {}, warn: (...said: unknown[]) => warned.push(said) }
  const options = { storage, script, logger: logger as never }
  const first = await buildGateway(t, { ...options, notifications: { webhook: { url: sink.url } } })
  sink.answer = status(410)
  await first.registry.create({ cwd: SOME_CWD, prompt: 'x' })
  await until(() => sink.received.length === 1)
  await until(async () => (await storage.outbox.list()).length === 0)
  await first.gateway.close()
  const before = sink.received.length

  sink.answer = undefined
  const second = await buildGateway(t, { ...options, notifications: { webhook: { url: sink.url } } })
  t.match(JSON.stringify(warned), /notifications\.webhook.*410 Gone.*Change its URL/)
  const { id } = await second.registry.create({ cwd: SOME_CWD, prompt: 'x' })
  await until(async () => (await second.registry.get(id))?.numTurns === 1)
  await second.gateway.close()
  t.equal(sink.received.length, before)
  t.same(await storage.outbox.list(), [])

  const third = await buildGateway(t, { ...options, notifications: { webhook: { url: `${sink.url}?again` } } })
  await third.registry.create({ cwd: SOME_CWD, prompt: 'x' })
  await until(() => sink.received.length > before)
})

t.test('a storage without a place for what waits to be delivered is refused before anything is lost', async (t) => {
  for (const part of ['outbox', 'idempotency', 'profiles'] as const) {
    const { [part]: _missing, ...storage } = createMemoryStorage()
    await t.rejects(buildGateway(t, { storage: storage as never }), {
      code: 'SG_ERR_OPTION',
      message: new RegExp(`storage\\.${part}`),
    })
  }
})
