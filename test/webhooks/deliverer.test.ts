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

t.test('a delivery is repeated with the same id and bytes, later every time, and then given up', async (t) => {
  const { sink, clock, deliverer, send, attempts, idle, warnings } = await deliveryWorld(t)
  sink.answer = status(500)
  const id = send()
  send()
  await attempts(1)
  await clock.advance(499)
  t.equal(sink.received.length, 1)
  await clock.advance(1)
  await attempts(2)
  await clock.advance(999)
  t.equal(sink.received.length, 2)
  await clock.advance(1)
  await attempts(4)
  t.same(
    sink.received.map(({ body }) => body.n),
    [1, 1, 1, 2],
    'the next one follows',
  )
  t.equal(new Set(sink.received.slice(0, 3).map(({ text }) => text)).size, 1)
  t.same(
    sink.received.slice(0, 3).map(({ headers }) => headers['webhook-id']),
    [id, id, id],
  )
  t.match((await deliverer.deliveries('lane')).at(-1), {
    id,
    attempt: 1,
    status: 500,
    error: 'status',
    type: 'job_progress',
  })
  t.match(warnings, [{ delivery: id, lane: 'lane', error: 'status', status: 500 }])
  sink.answer = undefined
  await clock.advance(500)
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { id: 'd2', attempt: 2, status: 204 })
  t.match(deliverer.counts, { delivered: 1, failedAttempts: 4, lost: 1 })
})

t.test('a receiver that is gone is not asked without a pause and without end, where none is asked for', async (t) => {
  const { sink, clock, deliverer, send } = await deliveryWorld(t, { attempts: 5_000, retryDelayMs: 0 })
  sink.answer = status(500, { 'retry-after': '0' })
  send()
  const made = (count: number) => until(() => deliverer.counts.failedAttempts >= count, `${count} attempts`)
  await made(1)
  for (const [index, pauseMs] of [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000, 1_000].entries()) {
    await clock.advance(pauseMs)
    await made(index + 2)
  }
  await clock.advance(999)
  t.equal(deliverer.counts.failedAttempts, 15)
  await deliverer.close()
})

t.test('nor after more attempts than a delay can be doubled', async (t) => {
  const { sink, clock, deliverer, send } = await deliveryWorld(t, { attempts: 5_000, retryDelayMs: 0 })
  sink.answer = status(500)
  send('lane', { failed: 2_000 })
  await until(() => deliverer.counts.failedAttempts === 1, 'an attempt')
  await clock.advance(999)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.equal(sink.received.length, 1)
  await clock.advance(1)
  await until(() => sink.received.length === 2, 'the next one')
})

t.test('a redirect is a failure and is not followed', async (t) => {
  const { sink, deliverer, send, idle } = await deliveryWorld(t, { attempts: 1 })
  for (const code of [301, 302, 303, 307, 308]) {
    sink.answer = status(code, { location: sink.url.replace('/hook', '/elsewhere') })
    send()
    await idle()
    t.match((await deliverer.deliveries('lane'))[0], { status: code, error: 'status' })
  }
  t.ok(sink.received.every(({ path }) => path === '/hook'))
})

t.test('Retry-After is honoured, in seconds and as a date', async (t) => {
  const { sink, clock, send, attempts, idle } = await deliveryWorld(t)
  sink.answer = status(503, { 'retry-after': '120' })
  send()
  await attempts(1)
  await clock.advance(119_999)
  t.equal(sink.received.length, 1)
  sink.answer = status(429, { 'retry-after': new Date(clock.now() + 61_000).toUTCString() })
  await clock.advance(1)
  await attempts(2)
  sink.answer = undefined
  await clock.advance(58_000)
  t.equal(sink.received.length, 2)
  await clock.advance(3_000)
  await idle()
  t.equal(sink.received.length, 3)
})

t.test('410 ends the deliveries to a target', async (t) => {
  const { sink, deliverer, send, idle, target } = await deliveryWorld(t)
  sink.answer = status(410)
  send()
  send()
  await idle()
  send()
  await idle()
  t.equal(sink.received.length, 1)
  t.match(await deliverer.deliveries('lane'), [{ status: 410 }])
  send('other', { target: { ...target, key: 'another' } })
  await idle()
  t.equal(sink.received.length, 2)
})

t.test('a receiver that hangs, resets or is down costs the attempt and nothing else', async (t) => {
  const { sink, clock, deliverer, send, attempts, idle } = await deliveryWorld(t, { attempts: 2, retryDelayMs: 0 })
  sink.answer = () => {}
  send()
  await until(() => sink.received.length === 1)
  await clock.advance(14_999)
  t.equal((await deliverer.deliveries('lane')).length, 0)
  sink.answer = (_received, response) => void response.socket?.resetAndDestroy()
  await clock.advance(1)
  await attempts(1)
  t.match((await deliverer.deliveries('lane'))[0], { error: 'timeout', durationMs: 15_000 })
  await clock.advance(0)
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { attempt: 2, error: 'connect' })
  sink.stop()
  send()
  await attempts(3)
  await clock.advance(0)
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { attempt: 2, error: 'connect' })
})

t.test('an answer that never ends is not waited for beyond the attempt, nor read beyond 64 KiB', async (t) => {
  const { sink, clock, deliverer, send, idle } = await deliveryWorld(t)
  let written = 0
  sink.answer = (_received, response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && written < 64e6 && response.write(Buffer.alloc(65_536))) written += 65_536
    }
    response.on('drain', more)
    more()
  }
  send()
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { status: 200 })
  t.ok(written < 32e6, 'the rest stayed with the sender')
  sink.answer = (_received, response) => void response.writeHead(200).write('slow')
  send()
  await until(() => sink.received.length === 2)
  for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate)
  await clock.advance(15_000)
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { status: 200 }, 'delivered is delivered')
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
