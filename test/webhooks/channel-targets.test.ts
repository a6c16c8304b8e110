import t from 'tap'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { until } from '../fixtures/build.js'
import { deliveryWorld } from '../fixtures/delivery-world.js'
import { status } from '../fixtures/webhook-sink.js'

t.test('a target may write its requests itself, each attempt anew', async (t) => {
  let writes = 0
  const { sink, send, clock, attempts, deliverer } = await deliveryWorld(t, {
    channel: 'phone',
    attempts: 2,
    retryDelayMs: 100,
    write:
      async ({ id, payload }) =>
      (now) => {
        const body = Buffer.from(JSON.stringify({ id, payload, now, write: ++writes }))
        return { body, headers: { 'content-type': 'text/plain', 'x-own': 'yes' } }
      },
  })
  sink.answer = status(500)
  const id = send('lane', { logLane: 'about it' })
  await until(() => sink.received.length === 1)
  sink.answer = undefined
  await until(async () => {
    await clock.advance(100)
    return sink.received.length === 2
  })
  t.match(sink.received[1], {
    headers: { 'content-type': 'text/plain', 'x-own': 'yes' },
    body: { id, payload: { n: 1 }, write: 2 },
  })
  await until(async () => (await deliverer.deliveries('about it')).length === 2)
  t.match(await deliverer.deliveries('about it'), [
    { id, channel: 'phone', status: 204 },
    { id, channel: 'phone', status: 500 },
  ])
  await attempts(0)
})

t.test('whoever still reads what it is to write keeps nobody from the connection', async (t) => {
  let read = () => {}
  const { sink, send } = await deliveryWorld(t, {
    connections: { perTarget: 1 },
    write: async ({ payload }) => {
      if ((payload as { n: number }).n === 1)
        await new Promise<void>((resolve) => {
          read = resolve
        })
      return () => ({ body: Buffer.from(JSON.stringify(payload)), headers: {} })
    },
  })
  send('slow')
  send('fast')
  await until(() => sink.received.length === 1, 'the second one')
  read()
  await until(() => sink.received.length === 2, 'the first one')
  t.same(
    sink.received.map(({ body }) => body.n),
    [2, 1],
  )
})

t.test('what cannot be written is given up, and the next one goes out', async (t) => {
  const { sink, send, attempts, deliverer } = await deliveryWorld(t, {
    write: async ({ payload }) => {
      if ((payload as { n: number }).n === 1) throw new Error('no')
      return () => {
        if ((payload as { n: number }).n === 2) throw new Error('no')
        return { body: Buffer.from('{}'), headers: {} }
      }
    },
  })
  send()
  send()
  send()
  await attempts(3)
  t.match(await deliverer.deliveries('lane'), [
    { id: 'd3', status: 204 },
    { id: 'd2', attempt: 1, error: 'unwritten' },
    { id: 'd1', attempt: 1, error: 'unwritten' },
  ])
  t.equal(sink.received.length, 1)
})

t.test(
  'a target that bounds what waits for it loses what comes beyond, of all lanes, and nobody else does',
  async (t) => {
    const outbox = createMemoryDeliveryOutbox()
    const { sink, send, target, outbox: kept, idle, deliverer } = await deliveryWorld(t, { maxWaiting: 3, outbox })
    const held: (() => void)[] = []
    sink.answer = (_received, response) => held.push(() => response.writeHead(204).end())
    for (const lane of ['a', 'b', 'c', 'd', 'e']) send(lane)
    const other = { ...target, key: 'other', maxWaiting: 1 }
    send('f', { target: other })
    await until(() => held.length === 4)
    t.equal(deliverer.counts.lost, 2)
    t.match(await deliverer.deliveries('d'), [{ error: 'dropped', attempt: 0 }])
    sink.answer = undefined
    for (const go of held) go()
    await idle()
    send('a')
    await idle()
    t.equal(sink.received.length, 5, 'there is room again')
    t.same(await kept.list(), [])
  },
)

t.test('a target says itself which answers mean that it is gone, and who keeps that', async (t) => {
  let gone = 0
  const { sink, send, idle, deliverer, outbox, target } = await deliveryWorld(t, {
    outbox: createMemoryDeliveryOutbox(),
    goneStatuses: [404, 410],
    onGone: () => gone++,
  })
  sink.answer = status(404)
  send('one')
  await idle()
  send('two')
  await idle()
  t.equal(sink.received.length, 1, 'one attempt, and none after it')
  t.equal(gone, 1)
  t.ok(deliverer.isGone(target))
  t.same(await outbox.gone?.(), [], 'it is not kept as a webhook that is gone')
})

t.test('what is due later is not delivered by a restart, but taken over', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const stored = { type: 'x', payload: {}, origin: { kind: 'reminder', channel: 'a' }, importance: 'normal' } as const
  await outbox.add({ lane: 'reminders', id: 'r', delivery: { ...stored, dueAt: 5 } })
  const { deliverer, sink } = await deliveryWorld(t, { outbox })
  const taken: unknown[] = []
  await deliverer.restore(
    async () => t.fail('it has no target yet') as never,
    (left) => taken.push(left),
  )
  t.match(taken, [{ lane: 'reminders', id: 'r', stored: { dueAt: 5 } }])
  t.equal((await outbox.list()).length, 1, 'and stays until it was made')
  t.equal(sink.received.length, 0)
})
