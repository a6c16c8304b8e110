import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { FrameBounds, Splices } from '../../plugins/splices.js'
import { CLOSE } from '../../schemas/close-codes.js'

/** A text frame of a server. */
function frame(length: number): Buffer {
  const head =
    length < 126
      ? Buffer.from([0x81, length])
      : length < 65_536
        ? Buffer.from([0x81, 126, length >> 8, length & 0xff])
        : Buffer.from([0x81, 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((bits) => (length >> bits) & 0xff)])
  return Buffer.concat([head, Buffer.alloc(length, 0xff)])
}

t.test('frames end where they end, in whatever pieces they come', async (t) => {
  const lengths = [0, 1, 125, 126, 300, 65_535, 65_536, 2]
  const bytes = Buffer.concat(lengths.map(frame))
  const ends = new Set<number>()
  let end = 0
  for (const length of lengths) {
    end += frame(length).length
    ends.add(end)
  }
  for (const size of [1, 2, 3, 7, 1000, 65_536, bytes.length]) {
    const bounds = new FrameBounds()
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size)
      bounds.pass(piece)
      const upTo = Math.min(at + size, bytes.length)
      if (bounds.isBound !== ends.has(upTo)) t.fail(`pieces of ${size}: wrong at ${upTo}`)
    }
    t.ok(bounds.isBound, `pieces of ${size}`)
  }
})

t.test('what belongs to the frame that has begun is told from what comes after it', async (t) => {
  const bounds = new FrameBounds()
  const first = frame(10)
  bounds.pass(first.subarray(0, 5))
  const rest = Buffer.concat([first.subarray(5), frame(3)])
  t.equal(bounds.untilBound(rest), first.length - 5)
  t.ok(bounds.isBound)
})

/** Both ends of a connection. */
async function connection(t: Test): Promise<{ near: Socket; far: Socket }> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await once(server, 'connection')) as [Socket]
  server.close()
  t.teardown(() => {
    near.destroy()
    far.destroy()
  })
  return { near, far }
}

t.test('a socket that another node opens only once this one leaves is told so, and ends', async (t) => {
  const splices = new Splices()
  await splices.closeAll(CLOSE.goingAway)
  const [client, owner] = [await connection(t), await connection(t)]
  const head = { httpVersion: '1.1', statusCode: 101, statusMessage: 'Switching Protocols', rawHeaders: [] }
  splices.add({ client: client.near, owner: owner.near, n: 2 }, head as unknown as IncomingMessage, {
    client: undefined,
    owner: Buffer.alloc(0),
  })
  const left = Promise.all([once(owner.far.resume(), 'close'), once(client.near, 'close')])
  const told: Buffer[] = []
  for await (const chunk of client.far) told.push(chunk as Buffer)
  const text = Buffer.concat(told).toString('latin1')
  t.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n\r\n\x88/)
  t.ok(text.endsWith(CLOSE.goingAway.reason))
  await left
  t.equal(splices.size, 0)
})
