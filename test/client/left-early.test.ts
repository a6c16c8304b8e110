import { Readable } from 'node:stream'
import t from 'tap'
import { clientOn } from '../../client/client.js'
import { attached, eventFrame, fakePlatform, said } from '../fixtures/client-platform.js'

function world() {
  const w = fakePlatform()
  const client = clientOn(w.platform, { baseUrl: 'http://gateway.test/v1' })
  return Object.assign(w, { attachment: client.session('s1').attach() })
}

t.test('an iterator that is left before it began, as by a stream that is destroyed, lets go', async (t) => {
  for (const leave of [
    (w: ReturnType<typeof world>) => w.attachment[Symbol.asyncIterator]().return?.(),
    (w: ReturnType<typeof world>) => w.attachment.batches().return(),
    (w: ReturnType<typeof world>) =>
      w.attachment
        .batches()
        .throw(new Error('left'))
        .catch(() => {}),
    (w: ReturnType<typeof world>) => Readable.from(w.attachment).destroy(),
  ]) {
    const w = world()
    await w.settle()
    w.socket.say(attached())
    await w.settle()
    void leave(w)
    await w.settle()
    t.equal(w.attachment.connection.state, 'ended')
    t.ok(w.socket.isClosed)
  }
})

t.test('one that waits for what comes next lets go at once, and not when it comes', async (t) => {
  const w = world()
  await w.settle()
  w.socket.say(attached(), eventFrame(said(1)))
  const iterator = w.attachment[Symbol.asyncIterator]()
  t.match(await iterator.next(), { value: { seq: 1 } })
  const next = iterator.next()
  const left = iterator.return?.()
  t.match(await next, { done: true })
  t.match(await left, { done: true })
  t.ok(w.socket.isClosed)
})

t.test('leaving one that never read ends nothing of the one that does', async (t) => {
  const w = world()
  await w.settle()
  w.socket.say(attached(), eventFrame(said(1)))
  const first = w.attachment.batches()
  t.match(await first.next(), { value: [{ seq: 1 }] })
  await w.attachment.batches().return()
  w.socket.say(eventFrame(said(2)))
  t.match(await first.next(), { value: [{ seq: 2 }] })
  await first.return()
  t.ok(w.socket.isClosed)
})
