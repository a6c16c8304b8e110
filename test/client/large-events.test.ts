import t from 'tap'
import { clientOn } from '../../client/client.js'
import type { SessionEvent } from '../../client/types.js'
import { until } from '../fixtures/build.js'
import { attached, eventFrame, eventStream, fakePlatform, said } from '../fixtures/client-platform.js'

t.test('an event that comes in very many parts is not searched again with each', async (t) => {
  const stream = eventStream()
  const world = fakePlatform()
  world.answer = () => stream.response
  const options = { baseUrl: 'http://gateway.test/v1', headers: { 'x-key': 'k' } }
  const attachment = clientOn(world.platform, options).session('s1').attach()
  const lengths: number[] = []
  const over = (async () => {
    for await (const event of attachment) lengths.push(JSON.stringify(event).length)
  })()
  await world.settle()
  stream.say(attached())
  const event = said(1, 'a'.repeat(20 << 20))
  const message = `data: ${JSON.stringify(eventFrame(event))}\n`
  for (let at = 0; at < message.length; at += 1024) stream.write(message.slice(at, at + 1024))
  stream.write('\n')
  stream.say(eventFrame(said(2)))
  await until(() => lengths.length === 2)
  t.strictSame(lengths, [JSON.stringify(event).length, JSON.stringify(said(2)).length])
  attachment.close()
  await over
})

t.test('of large events fewer are kept unread', async (t) => {
  const world = fakePlatform()
  const attachment = clientOn(world.platform, { baseUrl: 'http://gateway.test/v1' }).session('s1').attach()
  await world.settle()
  const all = [1, 2, 3, 4, 5].map((seq) => said(seq, 'x'.repeat(2 ** 23)))
  const [first] = world.sockets
  first!.say(attached(), ...all.map(eventFrame))
  await world.settle()
  t.ok(first!.isClosed)
  t.equal(world.sockets.length, 1)
  const seqs: number[] = []
  for await (const { seq } of attachment as AsyncIterable<SessionEvent>) {
    seqs.push(seq)
    await world.settle()
    if (seq === 4) world.socket.say(attached({ replayingFrom: 4 }), eventFrame(all[4]!))
    if (seq === 5) break
  }
  t.strictSame(seqs, [1, 2, 3, 4, 5])
})
