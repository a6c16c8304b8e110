import t from 'tap'
import { Slots } from '../../src/webhooks/slots.js'
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
  await until(() => underWay() === 36)
  const healthy = await WebhookSink.start(t)
  for (let lane = 0; lane < 20; lane++) send(`well${lane}`, { target: { ...target, url: healthy.url } })
  await until(() => healthy.received.length === 20, 'the one that answers')
  t.equal(underWay(), 36, 'three quarters of those for what callers name')
  t.ok(deliverer.pending >= 600)
})

t.test('what callers name leaves connections to the operator, however many hosts they name', async (t) => {
  const { deliverer, send, target } = await deliveryWorld(t)
  const dead = await Promise.all(Array.from({ length: 70 }, () => WebhookSink.start(t)))
  for (const sink of dead) sink.answer = () => {}
  for (const [index, sink] of dead.entries()) send(`dead${index}`, { target: { ...target, url: sink.url } })
  const underWay = () => dead.reduce((sum, { received }) => sum + received.length, 0)
  await until(() => underWay() === 48)
  const own = await WebhookSink.start(t)
  const named = { ...target, key: 'own', name: 'notifications.webhook', url: own.url }
  own.answer = () => {}
  for (let lane = 0; lane < 20; lane++) send(`own${lane}`, { target: named })
  await until(() => own.received.length === 8, "as many of the operator's as to any receiver")
  t.equal(underWay(), 48, 'three quarters of all connections')
  t.equal(deliverer.pending, 90)
})

t.test('a receiver that callers and the operator name has no more connections than another', async (t) => {
  const { sink, send, target } = await deliveryWorld(t, { connections: { perTarget: 2 } })
  sink.answer = () => {}
  for (let lane = 0; lane < 10; lane++) {
    send(`callers${lane}`)
    send(`own${lane}`, { target: { ...target, key: 'own', name: 'notifications.webhook' } })
  }
  const other = await WebhookSink.start(t)
  send('other', { target: { ...target, url: other.url } })
  await until(() => other.received.length === 1 && sink.received.length === 2)
  t.equal(sink.open, 2)
})

t.test('what a delivery waits for its turn is no part of its attempt', async (t) => {
  const { sink, clock, deliverer, send } = await deliveryWorld(t, { connections: { perTarget: 1 }, attempts: 1 })
  sink.answer = () => {}
  send('first')
  await until(() => sink.received.length === 1)
  send('second')
  const at = clock.now()
  await clock.advance(10_000)
  // set, it passes no time
  clock.set(-3_600_000)
  sink.answer = (_request, response) => void response.writeHead(204).end()
  await clock.advance(5_000)
  await until(() => deliverer.pending === 0)
  const [first] = await deliverer.deliveries('first')
  t.match(first, { error: 'timeout', at, durationMs: 15_000 })
  const [second] = await deliverer.deliveries('second')
  t.match(second, { status: 204, at: at + 15_000 - 3_600_000, durationMs: 0 })
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

t.test('hosts that callers name, and that have to wait, are not looked at for each other', async (t) => {
  const slots = new Slots()
  const hosts = Array.from({ length: 3_000 }, (_, n) => `http://${n}.example`)
  const { get } = Map.prototype
  let looks = 0
  Map.prototype.get = function (key) {
    looks++
    return get.call(this, key)
  }
  const served: boolean[] = []
  try {
    for (const host of hosts) void slots.take(host, 'caller').then((taken) => served.push(taken))
    for (const host of hosts.slice(0, 48)) slots.give(host, 'caller')
  } finally {
    Map.prototype.get = get
  }
  t.ok(looks < 10 * hosts.length, `${looks} looks at ${hosts.length} hosts`)
  await until(() => served.length === 96, 'one after the other')
  t.equal(await slots.take('http://own.example', 'operator'), true)
})
