import t from 'tap'
import { FrameBounds } from '../../plugins/splices.js'

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
