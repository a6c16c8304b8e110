import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { until } from '../fixtures/build.js'
import { type DeliveryWorldOptions, deliveryWorld } from '../fixtures/delivery-world.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

const HOUR = 60 * 60 * 1000

/** A process on an outbox that outlasts it; `again` is the next one. */
async function process(t: Test, options: DeliveryWorldOptions = {}) {
  const outbox = options.outbox ?? createMemoryDeliveryOutbox()
  const world = await deliveryWorld(t, { ...options, outbox })
  const { sink, clock } = world
  const again = (more: DeliveryWorldOptions = {}) => process(t, { ...options, outbox, sink, clock, ...more })
  const kept = async () => (await outbox.list()).map(({ id }) => id)
  const ids = () => sink.received.map(({ headers }) => headers['webhook-id'])
  return { ...world, again, kept, ids }
}

t.test('what a crash cut off is delivered by the next process: the same ids and bodies, lane by lane', async (t) => {
  const { sink, send, again, kept, ids } = await process(t)
  sink.answer = () => {}
  send('a')
  send('b')
  send('a', { payload: { text: 'Zwölf "Boxkämpfer"', nested: [{ deep: null }] } })
  send('a')
  await until(() => sink.received.length === 2, 'the first of both lanes')
  t.same(await kept(), ['d1', 'd2', 'd3', 'd4'])
  sink.received.length = 0
  sink.answer = (_received, response) => void response.writeHead(204).end()
  const next = await again()
  await next.restore()
  next.send('a', { id: 'new' })
  await next.idle()
  t.same(
    ids().filter((id) => id !== 'd2'),
    ['d1', 'd3', 'd4', 'new'],
    'what is new comes after it',
  )
  t.ok(ids().includes('d2'))
  t.same(sink.received.find(({ headers }) => headers['webhook-id'] === 'd3')?.body, {
    text: 'Zwölf "Boxkämpfer"',
    nested: [{ deep: null }],
  })
  t.same(await kept(), [])
  t.equal(next.deliverer.counts.delivered, 5)
})

t.test('what was made while the storage was away is forgotten when it is back', async (t) => {
  const memory = createMemoryDeliveryOutbox()
  let isAway = false
  const outbox = {
    ...memory,
    remove: async (lane: string, id: string) => {
      if (isAway) throw new Error('it is away')
      return memory.remove(lane, id)
    },
  }
  const { sink, clock, send, idle, kept, deliverer, warnings } = await process(t, { outbox })
  isAway = true
  send()
  await idle()
  t.same(await kept(), ['d1'])
  await until(() => clock.pendingTimers > 0, 'the next try')
  isAway = false
  await clock.advance(30_000)
  await until(async () => (await kept()).length === 0, 'an empty outbox')
  t.equal(sink.received.length, 1)

  isAway = true
  send()
  await idle()
  await until(() => clock.pendingTimers > 0, 'the next try')
  await deliverer.close()
  await until(() => warnings.length > 0, 'the last try')
  t.equal(clock.pendingTimers, 0, 'who has ended does not try on')
})

t.test('what was made, given up, refused with 410 or dropped is not kept', async (t) => {
  const { sink, send, attempts, idle, kept, deliverer, target } = await process(t, { attempts: 1 })
  send()
  await idle()
  t.same(await kept(), [])
  sink.answer = status(500)
  send()
  await attempts(2)
  await idle()
  t.same(await kept(), [])
  sink.answer = status(410)
  send()
  send()
  await idle()
  send()
  t.same(await kept(), [])
  let release = () => {}
  sink.answer = (_received, response) => {
    release = () => response.writeHead(200).end()
  }
  const other = { target: { ...target, key: 'other' } }
  const first = sink.received.length
  for (let index = 0; index < 300; index++) send('full', { ...other, importance: index % 2 ? 'last' : 'progress' })
  await until(() => sink.received.length > first)
  t.equal((await kept()).length, 256)
  t.equal(deliverer.pending, 256)
  sink.answer = undefined
  release()
  await idle()
  t.same(await kept(), [])
})

t.test('what does not say where it goes keeps nothing else from its receiver', async (t) => {
  const { sink, send, attempts, deliverer, again, kept, outbox, ids } = await process(t)
  sink.answer = status(503)
  send()
  await attempts(1)
  await deliverer.close()
  await outbox.add({ lane: 'lane', id: 'other', delivery: { url: sink.url } })
  await outbox.add({ lane: 'later', id: 'later', delivery: { dueAt: 1 } })
  await outbox.add({ lane: 'lane', id: 'nothing', delivery: null as never })
  sink.answer = undefined
  sink.received.length = 0
  const next = await again()
  await next.restore()
  await next.idle()
  t.same(ids(), ['d1'])
  t.same(await kept(), ['other', 'later', 'nothing'], 'it is left in place')
  t.match(
    next.errors,
    ['other of lane', 'later of later', 'nothing of lane'].map((which) => ({
      err: { message: RegExp(`Delivery ${which}`) },
    })),
  )
})

t.test('a receiver that is down over a restart gets what waited, and nothing counts as lost', async (t) => {
  const { sink, send, attempts, deliverer, again, kept, ids } = await process(t)
  sink.answer = status(503)
  send()
  send()
  await attempts(1)
  await deliverer.flush()
  t.equal(sink.received.length, 1, 'what has to wait is left')
  send()
  await deliverer.flush()
  await deliverer.close()
  t.equal(sink.received.length, 1, 'and nothing overtakes it')
  t.same(await kept(), ['d1', 'd2', 'd3'])
  t.equal(deliverer.counts.lost, 0)
  const down = await again()
  await down.restore()
  await down.attempts(2)
  await down.deliverer.flush()
  t.same(await kept(), ['d1', 'd2', 'd3'])
  sink.answer = undefined
  sink.received.length = 0
  const up = await again()
  await up.restore()
  await up.idle()
  t.same(ids(), ['d1', 'd2', 'd3'])
  t.same([up.deliverer.counts, await kept()], [{ delivered: 3, failedAttempts: 0, lost: 0 }, []])
  t.match(
    (await up.deliverer.deliveries('lane')).map(({ id }) => id),
    ['d3', 'd2', 'd1', 'd1', 'd1'],
    'the log goes on',
  )
})

t.test('a shutdown asks a receiver that is not there no more than it is asking already', async (t) => {
  const { sink, send, deliverer, kept, again } = await process(t, { connections: { perTarget: 1 } })
  const open: ServerResponse[] = []
  sink.answer = (_received, response) => void open.push(response)
  for (const lane of ['a', 'b', 'c']) send(lane)
  await until(() => open.length === 1)
  const flushed = deliverer.flush()
  open[0]!.destroy()
  await flushed
  await deliverer.close()
  t.equal(sink.received.length, 1)
  t.same((await kept()).sort(), ['d1', 'd2', 'd3'])
  t.equal(deliverer.counts.lost, 0)
  sink.answer = undefined
  const next = await again()
  await next.restore()
  await next.idle()
  t.same(await kept(), [])
  t.equal(next.deliverer.counts.delivered, 3)
})

t.test('a shutdown makes what can be made, and leaves who asked for patience or hangs', async (t) => {
  const patient = await process(t)
  patient.sink.answer = status(503, { 'retry-after': '60' })
  patient.send()
  await patient.attempts(1)
  await patient.deliverer.flush()
  t.same(await patient.kept(), ['d1'])

  const hanging = await process(t, { attempts: 1 })
  hanging.sink.answer = () => {}
  hanging.send()
  hanging.send()
  await until(() => hanging.sink.received.length === 1)
  await hanging.deliverer.close()
  hanging.send()
  t.same(await hanging.kept(), ['d1', 'd2', 'd3'], 'its last attempt was cut off, so it does not count')
  t.equal(hanging.deliverer.counts.lost, 0)

  const fine = await process(t)
  for (let index = 0; index < 5; index++) fine.send()
  await fine.deliverer.flush()
  t.same([fine.sink.received.length, await fine.kept()], [5, []])
})

t.test('what has no target any more is given up, and says so', async (t) => {
  const { sink, send, attempts, deliverer, again, kept } = await process(t)
  sink.answer = status(500)
  send('lane', { origin: { kind: 'notification' } })
  send('lane', { origin: { kind: 'dispatch', tool: 'deploy' } })
  await attempts(1)
  await deliverer.close()
  sink.answer = undefined
  const next = await again()
  await next.restore(async ({ lane, origin }) =>
    lane === 'lane' && origin.kind === 'dispatch' ? next.target : undefined,
  )
  await next.idle()
  t.equal(sink.received.at(-1)?.headers['webhook-id'], 'd2')
  t.same(await kept(), [])
  t.match(next.warnings, [{ delivery: 'd1', lane: 'lane' }])
  t.match(next.deliverer.counts, { delivered: 1, lost: 1 })
})

t.test('a prepared delivery is kept at once, and made only when it is sent', async (t) => {
  const { sink, deliverer, delivery, idle, kept, ids, again } = await process(t)
  const [sent, withdrawn, cutOff] = [delivery(), delivery(), delivery()]
  const preparations = [sent, withdrawn, cutOff].map((one) => deliverer.prepare('lane', one))
  t.same(await kept(), ['d1', 'd2', 'd3'])
  t.equal(deliverer.pending, 0)
  preparations[1]?.withdraw()
  preparations[0]?.send()
  await idle()
  t.same([ids(), await kept()], [['d1'], ['d3']])
  const next = await again()
  await next.restore()
  await next.idle()
  t.same([ids(), sink.received.length, await kept()], [['d1', 'd3'], 2, []])
})

t.test('an outbox that fails is told of, and keeps nothing from being delivered', async (t) => {
  const fails = () => Promise.reject(new Error('no space left on device'))
  const outbox = { ...createMemoryDeliveryOutbox(), add: fails, remove: fails, log: fails, forget: fails }
  const { sink, send, idle, deliverer, warnings } = await process(t, { outbox })
  send()
  await idle()
  deliverer.forget('lane')
  await until(() => warnings.length === 3)
  t.equal(sink.received.length, 1)
  t.match(warnings[0], { err: { message: 'no space left on device' } })
})

t.test('an outbox that ends with its process is not asked to keep anything', async (t) => {
  const { deliverer, send, idle, attempts, outbox, sink } = await deliveryWorld(t)
  sink.answer = status(500)
  send()
  await attempts(1)
  t.same(await outbox.list(), [])
  await deliverer.flush()
  await idle()
  t.match([sink.received.length, deliverer.counts.lost], [3, 1])
})

t.test(
  'how often a delivery has failed, and for how long its receiver is to be left alone, outlasts the process',
  async (t) => {
    const outbox = createMemoryDeliveryOutbox()
    const first = await deliveryWorld(t, { outbox })
    const { sink, clock } = first
    sink.answer = (_received, response) => void response.writeHead(429, { 'retry-after': '600' }).end()
    const id = first.send()
    await first.attempts(1)
    await until(async () => JSON.stringify(await outbox.list()).includes('notBefore'), 'what the next process knows')
    await first.deliverer.close()

    const next = await deliveryWorld(t, { outbox, sink, clock })
    await next.restore()
    await clock.advance(599_000)
    t.equal(sink.received.length, 1, 'left alone, also by the next process')
    await clock.advance(1_000)
    await next.attempts(2)
    await until(async () => JSON.stringify(await outbox.list()).includes('"failed":2'), 'what the next process knows')
    await next.deliverer.close()

    await clock.advance(600_000)
    const last = await deliveryWorld(t, { outbox, sink, clock })
    await last.restore()
    await last.idle()
    t.same(
      (await last.deliverer.deliveries('lane')).map(({ attempt, status }) => [attempt, status]),
      [3, 2, 1].map((attempt) => [attempt, 429]),
    )
    t.match(last.warnings, [{ delivery: id, error: 'status', status: 429 }], 'given up after as many as it may have')
    t.same(await outbox.list(), [])
  },
)

t.test(
  'an attempt that the end of the process cut off has not failed: the next one makes as many as there may be',
  async (t) => {
    const outbox = createMemoryDeliveryOutbox()
    const first = await deliveryWorld(t, { outbox, attempts: 2, retryDelayMs: 0 })
    const { sink, clock } = first
    sink.answer = () => {}
    first.send()
    await until(() => sink.received.length === 1, 'an attempt under way')
    await first.deliverer.close()
    sink.answer = status(500)
    const next = await deliveryWorld(t, { outbox, sink, clock, attempts: 2, retryDelayMs: 0 })
    await next.restore()
    await until(async () => {
      await clock.advance(0)
      return (await outbox.list()).length === 0
    }, 'given up')
    t.equal(sink.received.length, 3)
  },
)

t.test('what a receiver asked for, and how often it failed, is nothing to the one that is named instead', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const first = await deliveryWorld(t, { outbox, attempts: 2 })
  const { sink, clock } = first
  sink.answer = status(429, { 'retry-after': '600' })
  first.send()
  await first.attempts(1)
  await until(async () => JSON.stringify(await outbox.list()).includes('notBefore'), 'what the next process knows')
  await first.deliverer.close()

  const another = await WebhookSink.start(t)
  another.answer = (_received, response) => void response.writeHead(another.received.length === 1 ? 500 : 204).end()
  const next = await deliveryWorld(t, { outbox, sink: another, clock, attempts: 2, key: 'another' })
  await next.restore()
  await next.attempts(2)
  await clock.advance(500)
  await next.idle()
  t.same([another.received.length, sink.received.length, await outbox.list()], [2, 1, []])
})

t.test('a receiver that asks for more patience than there is gets no more of it by a restart', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const first = await deliveryWorld(t, { outbox })
  const { sink, clock } = first
  sink.answer = (_received, response) => void response.writeHead(429, { 'retry-after': '86400' }).end()
  first.send()
  await first.attempts(1)
  await until(async () => JSON.stringify(await outbox.list()).includes('notBefore'), 'what the next process knows')
  await clock.advance(HOUR / 2)
  await first.deliverer.close()
  const next = await deliveryWorld(t, { outbox, sink, clock })
  await next.restore()
  await clock.advance(HOUR / 2)
  await next.attempts(2)
})
