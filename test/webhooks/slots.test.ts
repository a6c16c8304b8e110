import t from 'tap'
import { until } from '../fixtures/build.js'
import { deliveryWorld } from '../fixtures/delivery-world.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

t.test('a receiver that never answers delays only its own deliveries, with eight connections', async (t) => {
  const { sink: dead, deliverer, send, target } = await deliveryWorld(t)
  dead.answer = () => {}
  const warned: string[] = []
  const onWarning = (warning: Error) => warned.push(warning.name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  for (let lane = 0; lane < 1_500; lane++) send(`dead${lane}`)
  await until(() => dead.received.length === 8)
  const healthy = await WebhookSink.start(t)
  for (let lane = 0; lane < 1_000; lane++) send(`well${lane}`, { target: { ...target, url: healthy.url } })
  await until(() => healthy.received.length === 1_000, 'all to the one that answers')
  t.equal(dead.received.length, 8)
  t.ok(healthy.mostOpen <= 8, 'no more than its own connections')
  await until(() => deliverer.pending === 1_500)
  t.same(warned, [])
})

t.test('many receivers that never answer leave room for one that does', async (t) => {
  const { deliverer, send, target } = await deliveryWorld(t)
  const dead = await Promise.all(Array.from({ length: 12 }, () => WebhookSink.start(t)))
  for (const sink of dead) sink.answer = () => {}
  for (let lane = 0; lane < 50; lane++)
    for (const [index, sink] of dead.entries()) send(`${index}-${lane}`, { target: { ...target, url: sink.url } })
  const underWay = () => dead.reduce((sum, { received }) => sum + received.length, 0)
  await until(() => underWay() === 48)
  const healthy = await WebhookSink.start(t)
  for (let lane = 0; lane < 20; lane++) send(`well${lane}`, { target: { ...target, url: healthy.url } })
  await until(() => healthy.received.length === 20, 'the one that answers')
  t.equal(underWay(), 48, 'three quarters of all connections')
  t.ok(deliverer.pending >= 600)
})

t.test('what waits for its turn when the process ends is left to the next one, at once', async (t) => {
  const { createMemoryDeliveryOutbox } = await import('../../src/storage/memory/delivery-outbox.js')
  const outbox = createMemoryDeliveryOutbox()
  const { sink, deliverer, send } = await deliveryWorld(t, { outbox })
  sink.answer = () => {}
  for (let lane = 0; lane < 5_000; lane++) send(`lane${lane}`)
  await until(() => sink.received.length === 8)
  const since = performance.now()
  await deliverer.close()
  t.ok(performance.now() - since < 5_000)
  t.equal((await outbox.list()).length, 5_000)
  t.match(deliverer.counts, { lost: 0 })
})

t.test('a target that is gone is told to those who wait for it', async (t) => {
  const { sink, deliverer, send, idle } = await deliveryWorld(t)
  sink.answer = (_request, response) => response.writeHead(410).end()
  for (let lane = 0; lane < 100; lane++) send(`lane${lane}`)
  await idle()
  t.ok(sink.received.length <= 8)
  t.equal(deliverer.pending, 0)
})
