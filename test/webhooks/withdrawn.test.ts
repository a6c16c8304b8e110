import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { until } from '../fixtures/build.js'
import { type DeliveryWorldOptions, deliveryWorld } from '../fixtures/delivery-world.js'

/** A receiver that keeps its first request waiting, and answers the others. */
async function slowWorld(t: Test, options: DeliveryWorldOptions = {}) {
  const world = await deliveryWorld(t, options)
  const { sink } = world
  let first: ServerResponse | undefined
  sink.answer = (_received, response) => {
    if (!first) first = response
    else response.writeHead(204).end()
  }
  return {
    ...world,
    underWay: () => until(() => first !== undefined, 'an attempt'),
    /** That it is to come again in an hour. */
    fail: () => void first!.writeHead(503, { 'retry-after': '3600' }).end(),
    answer: () => void first!.writeHead(204).end(),
    received: () => sink.received.map(({ headers }) => headers['webhook-id']),
  }
}

t.test('what is withdrawn while an attempt of it is under way that fails holds up nothing after it', async (t) => {
  const { deliverer, send, underWay, fail, received, idle } = await slowWorld(t)
  const first = send()
  await underWay()
  const second = send()
  deliverer.withdraw('lane', first)
  fail()
  await idle()
  t.same(received(), [first, second], 'no time has passed')
  t.match(deliverer.counts, { delivered: 1, lost: 0 })
})

t.test('what is withdrawn while it waits for a connection is not sent', async (t) => {
  const { deliverer, send, underWay, answer, received, idle } = await slowWorld(t, { connections: { perTarget: 1 } })
  const first = send()
  await underWay()
  const withdrawn = send('another')
  // it is its turn by then
  await new Promise(setImmediate)
  deliverer.withdraw('another', withdrawn)
  const last = send('another')
  answer()
  await idle()
  t.same(received(), [first, last])
})

t.test('what comes to nothing while an attempt of it is under way that fails is not attempted again', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const { deliverer, delivery, send, underWay, fail, received, idle } = await slowWorld(t, { outbox })
  const nothing = delivery()
  const prepared = deliverer.prepare('lane', nothing)
  prepared.send()
  await underWay()
  prepared.withdraw()
  t.equal((await outbox.list()).length, 1, 'it is kept until that attempt is over')
  const next = send()
  fail()
  await idle()
  t.same(received(), [nothing.id, next])
  t.same(await outbox.list(), [])
})

t.test('where too many wait, what is withdrawn goes first and is not lost', async (t) => {
  const { deliverer, send, underWay, answer, received, idle } = await slowWorld(t)
  const first = send()
  await underWay()
  const waiting = Array.from({ length: 255 }, () => send('lane', { importance: 'progress' }))
  const withdrawn = waiting.splice(100, 2)
  for (const id of withdrawn) deliverer.withdraw('lane', id)
  const last = [send(), send()]
  t.match(deliverer.counts, { lost: 0 })
  answer()
  await idle()
  t.same(received(), [first, ...waiting, ...last])
  t.match(deliverer.counts, { delivered: 256, lost: 0 })
})

t.test('what comes anew under the id of one that was withdrawn stays kept where that one goes', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const { deliverer, delivery, send, underWay, answer, received, idle } = await slowWorld(t, { outbox })
  send()
  await underWay()
  const told = delivery({ importance: 'progress' })
  deliverer.prepare('lane', told).send()
  for (let more = 0; more < 253; more++) send()
  deliverer.withdraw('lane', told.id)
  deliverer.prepare('lane', { ...told }).send()
  send()
  t.ok((await outbox.list()).some(({ id }) => id === told.id))
  answer()
  await idle()
  t.equal(received().filter((id) => id === told.id).length, 1)
  t.match(deliverer.counts, { delivered: 256, lost: 0 })
})
