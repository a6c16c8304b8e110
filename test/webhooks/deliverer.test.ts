import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'
import { Standstill } from '../../src/lib/standstill.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { EgressGuard } from '../../src/webhooks/egress.js'
import type { DeliveryOutbox, KeptDelivery } from '../../src/webhooks/outbox.js'
import { deliveryHeaders, signingKeys } from '../../src/webhooks/signing.js'
import { until } from '../fixtures/build.js'
import { deliveryWorld } from '../fixtures/delivery-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { status } from '../fixtures/webhook-sink.js'

t.test('deliveries of one lane go in order, one at a time; lanes do not wait for each other', async (t) => {
  const { sink, deliverer, send, idle } = await deliveryWorld(t)
  const held: (() => void)[] = []
  sink.answer = ({ body }, response) => {
    if (body.n === 1) held.push(() => response.writeHead(200).end())
    else response.writeHead(200).end()
  }
  send('a')
  send('a')
  send('a')
  send('b')
  await until(() => sink.received.length === 2)
  t.same(sink.received.map(({ body }) => body.n).sort(), [1, 4])
  held[0]?.()
  await idle()
  t.same(
    sink.received.map(({ body }) => body.n).filter((n) => n !== 4),
    [1, 2, 3],
  )
  t.equal(sink.mostOpen, 2)
  t.match(deliverer.counts, { delivered: 4, failedAttempts: 0, lost: 0 })
  t.match(sink.received[0]?.headers, { 'content-type': 'application/json', 'webhook-id': 'd1' })
  t.notOk(sink.received[0]?.headers['webhook-signature'])
})

t.test('a full lane drops progress first, then the oldest, and never the last word', async (t) => {
  const { sink, deliverer, send, idle } = await deliveryWorld(t)
  let release = () => {}
  sink.answer = (_received, response) => {
    release = () => response.writeHead(200).end()
  }
  send('lane', { importance: 'normal' })
  await until(() => sink.received.length === 1)
  for (let index = 0; index < 200; index++) send('lane', { importance: 'progress' })
  for (let index = 0; index < 100; index++) send('lane', { importance: 'normal' })
  t.equal(deliverer.pending, 256)
  for (let index = 0; index < 300; index++) send('lane', { importance: 'last' })
  t.equal(deliverer.pending, 301, 'what must not be dropped is kept beyond the limit')
  sink.answer = undefined
  release()
  await idle()
  t.equal(sink.received.length, 301)
  t.equal(deliverer.counts.lost, 300)
  t.ok((await deliverer.deliveries('lane')).length <= 100, 'the log is bounded')
})

t.test('nothing stays of a lane that is forgotten while something of it is under way', async (t) => {
  const { sink, deliverer, outbox, send, idle } = await deliveryWorld(t)
  let release = () => {}
  sink.answer = (_received, response) => {
    release = () => response.writeHead(200).end()
  }
  send()
  await until(() => sink.received.length === 1)
  deliverer.forget('lane')
  release()
  await idle()
  t.match(deliverer.counts, { delivered: 1 })
  t.same(await outbox.attempts('lane'), [])
})

t.test('signatures are those of Standard Webhooks, of every secret, over each attempt’s own time', async (t) => {
  const key = Buffer.alloc(24, 7)
  const keys = signingKeys([`whsec_${key.toString('base64')}`, 'plain text'], 'secret')
  const { sink, clock, send, attempts, idle } = await deliveryWorld(t, { signingKeys: keys })
  sink.answer = status(500)
  send()
  await attempts(1)
  sink.answer = undefined
  await clock.advance(500)
  await idle()
  await clock.advance(1000)
  send()
  await idle()
  for (const { headers, text } of sink.received) {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
    const expected = [key, 'plain text'].map(
      (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${text}`).digest('base64')}`,
    )
    t.equal(signature, expected.join(' '))
  }
  t.equal(Number(sink.received[2]?.headers['webhook-timestamp']), Math.floor(clock.now() / 1000))
  t.throws(() => signingKeys('whsec_$$$', 'queue.webhookSecret'), { message: /^queue\.webhookSecret: / })
})

t.test('what the pages verify a delivery with takes every secret that signs', async (t) => {
  const [, shown = ''] = /```ts verify\.ts\n(.*?)```/s.exec(readFileSync('docs/jobs.md', 'utf8')) ?? []
  const { outputText } = ts.transpileModule(shown, { compilerOptions: { module: ts.ModuleKind.ESNext } })
  const { isOurs } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`)
  const body = Buffer.from('{"type":"turn_completed"}')
  const now = 1_800_000_000
  for (const secret of [`whsec_${Buffer.alloc(24, 7).toString('base64')}`, 'plain text', '5f6b7c8d9e0f5f6b7c8d9e0f']) {
    const headers = deliveryHeaders('1', body, signingKeys(secret, 'secret'), now)
    t.ok(isOurs(headers, body.toString(), secret, now * 1000), secret)
    t.notOk(isOurs(headers, body.toString(), 'another', now * 1000))
  }
})

t.test('what may not be reached is not, and is not tried again', async (t) => {
  const guard = new EgressGuard()
  const { sink, deliverer, send, idle } = await deliveryWorld(t, { guard })
  send()
  await idle()
  t.match(await deliverer.deliveries('lane'), [{ attempt: 1, error: 'blocked' }])
  t.equal(sink.received.length, 0)
  const nowhere = new EgressGuard({ resolve: () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })) })
  send('dns', {
    target: {
      key: 'x',
      url: 'http://nowhere.example/',
      headers: {},
      signingKeys: [],
      attempts: 1,
      retryDelayMs: 0,
      guard: nowhere,
    },
  })
  await idle()
  t.match(await deliverer.deliveries('dns'), [{ error: 'dns' }])
})

t.test('headers of the target are sent, in lower case and once', async (t) => {
  const headers = { Authorization: 'Bearer x', 'X-Trace': '1', 'x-trace': '2', 'User-Agent': 'mine' }
  const { sink, send, idle } = await deliveryWorld(t, { headers })
  send()
  await idle()
  t.match(sink.received[0]?.headers, { authorization: 'Bearer x', 'x-trace': '2', 'user-agent': 'mine' })
})

t.test('a flush waits for nothing but the receivers', async (t) => {
  const { sink, deliverer, send, attempts } = await deliveryWorld(t)
  sink.answer = status(503)
  send()
  await attempts(1)
  await deliverer.flush()
  t.equal(sink.received.length, 3, 'its retries follow at once')
  t.match(deliverer.counts, { lost: 1 })
  await deliverer.flush()

  const patient = await deliveryWorld(t)
  patient.sink.answer = status(503, { 'retry-after': '60' })
  patient.send()
  await patient.attempts(1)
  await patient.deliverer.flush()
  t.equal(patient.sink.received.length, 1, 'who asked for patience is left alone')

  const hanging = await deliveryWorld(t)
  hanging.sink.answer = () => {}
  hanging.send()
  await until(() => hanging.sink.received.length === 1)
  const flushed = hanging.deliverer.flush()
  hanging.deliverer.close()
  await flushed
  t.match((await hanging.deliverer.deliveries('lane'))[0], { error: 'stopped' })
})

t.test('what another process left goes first also where the lane is full and some of it is given up', async (t) => {
  const left: KeptDelivery[] = Array.from({ length: 10 }, (_, n) => ({
    ...{ id: `left${n}`, lane: 'lane' },
    delivery: { type: 'job_progress', payload: {}, origin: { kind: 'job', url: '' }, importance: 'progress' },
  }))
  const removed = new Set<string>()
  let heldUp = true
  let asked = 0
  const outbox: DeliveryOutbox = {
    ...createMemoryDeliveryOutbox(),
    list: async (lanes) => (lanes && !heldUp ? left.filter(({ id }) => !removed.has(id)) : []),
    remove: async (_lane, id) => void removed.add(id),
    async isHeldUp() {
      asked++
      return heldUp
    },
  }
  const { sink, clock, send, restore, deliverer, idle } = await deliveryWorld(t, { outbox })
  await restore()
  for (let n = 0; n < 250; n++) send('lane', { id: `own${n}`, importance: 'progress' })
  await until(() => asked === 1)
  heldUp = false
  await deliverer.takeUp(['lane'])
  await clock.advance(250)
  await idle()
  const ids = sink.received.map(({ headers }) => String(headers['webhook-id']))
  const firstOwn = ids.findIndex((id) => id.startsWith('own'))
  t.same(
    ids.slice(firstOwn).filter((id) => id.startsWith('left')),
    [],
  )
  t.ok(firstOwn > 0)
})

for (const first of [['first'], []])
  t.test(
    `a lane of two dead processes waits until what both have left is taken up: ${first.length} and 1`,
    async (t) => {
      let mine: KeptDelivery[] = []
      const left = (id: string): KeptDelivery => ({
        ...{ id, lane: 'lane' },
        delivery: { type: 'job_progress', payload: {}, origin: { kind: 'job', url: '' }, importance: 'normal' },
      })
      let onListed = () => {}
      const outbox: DeliveryOutbox = {
        ...createMemoryDeliveryOutbox(),
        async list(lanes) {
          const listed = mine
          if (lanes) onListed()
          return listed
        },
        async remove(_lane, id) {
          mine = mine.filter((one) => one.id !== id)
        },
        isHeldUp: async () => false,
      }
      const { sink, clock, send, restore, deliverer, idle } = await deliveryWorld(t, { outbox })
      await restore()
      mine = first.map(left)
      // the other one is taken over while the first is read
      onListed = () => {
        deliverer.expect(['lane'])
        mine = [...mine, left('next')]
        onListed = () => {}
      }
      deliverer.expect(['lane'])
      await deliverer.takeUp(['lane'])
      send('lane', { id: 'own' })
      await clock.advance(250)
      await new Promise(setImmediate)
      await deliverer.takeUp(['lane'])
      await clock.advance(250)
      await idle()
      t.same(
        sink.received.map(({ headers }) => headers['webhook-id']),
        [...first, 'next', 'own'],
      )
    },
  )

t.test('what is withdrawn while it waits for its next attempt holds up nothing that comes after it', async (t) => {
  const { sink, deliverer, send, attempts, idle } = await deliveryWorld(t)
  sink.answer = ({ body }, response) =>
    body.n === 1 ? response.writeHead(503, { 'retry-after': '3600' }).end() : response.writeHead(200).end()
  const first = send()
  await attempts(1)
  send()
  deliverer.withdraw('lane', first)
  await idle()
  t.same(
    sink.received.map(({ body }) => body.n),
    [1, 2],
    'no time has passed',
  )
})

t.test('what waited for its process to go on is not sent when that is closed instead', async (t) => {
  const clock = new VirtualClock()
  const standstill = new Standstill(clock)
  const outbox = createMemoryDeliveryOutbox()
  const { sink, deliverer, send } = await deliveryWorld(t, { clock, standstill, outbox })
  standstill.stop()
  send()
  await new Promise(setImmediate)
  standstill.end()
  await deliverer.close()
  t.same(sink.received, [])
  t.equal((await outbox.list()).length, 1, 'the next one makes it')
})

t.test('what waits for its process to go on is read for and signed when that does', async (t) => {
  const clock = new VirtualClock()
  const standstill = new Standstill(clock)
  const asked: unknown[] = []
  const write = async () => {
    asked.push(standstill.stands)
    return (now: number) => {
      asked.push(now)
      return { body: Buffer.from('{}'), headers: {} }
    }
  }
  const { send, idle } = await deliveryWorld(t, { clock, standstill, write })
  standstill.stop()
  send()
  await new Promise(setImmediate)
  await clock.advance(3_600_000)
  standstill.goOn()
  await idle()
  t.same(asked, [false, clock.now()])
})

for (const next of ['told later', 'of a dead process'])
  t.test(`what comes after what waits is made after it, once: what is ${next}`, async (t) => {
    let isHeldUp = true
    const removed = new Set<string>()
    const outbox: DeliveryOutbox = {
      ...createMemoryDeliveryOutbox(),
      isHeldUp: async () => isHeldUp,
      async remove(_lane, id) {
        removed.add(id)
      },
      async list(lanes) {
        const kept = (id: string): KeptDelivery => ({ id, lane: 'lane', delivery: delivery({ id }) })
        return lanes ? ['first', 'second'].filter((id) => !removed.has(id)).map(kept) : []
      },
    }
    const { sink, clock, deliverer, delivery, send, restore, idle } = await deliveryWorld(t, { outbox })
    await restore()
    send('lane', { id: 'first' })
    await new Promise(setImmediate)
    // kept with a write of which nobody has heard yet
    const second = next === 'told later' && deliverer.prepare('lane', delivery({ id: 'second' }))
    if (!second) await deliverer.takeUp(['lane'])
    isHeldUp = false
    await clock.advance(250)
    await idle()
    if (second) second.send()
    await idle()
    t.same(
      sink.received.map(({ headers }) => headers['webhook-id']),
      ['first', 'second'],
    )
  })
