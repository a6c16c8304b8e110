import t from 'tap'
import { until } from '../fixtures/build.js'
import { deliveryWorld } from '../fixtures/delivery-world.js'
import { turns } from '../fixtures/turns.js'
import { status } from '../fixtures/webhook-sink.js'

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
  await turns(50)
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
  await turns(200)
  await clock.advance(15_000)
  await idle()
  t.match((await deliverer.deliveries('lane'))[0], { status: 200 }, 'delivered is delivered')
})
