import t from 'tap'
import { eventStreamFetch } from '../../../src/engines/provider/event-stream.js'
import { until } from '../../fixtures/build.js'

/** Goes on for as long as somebody reads. */
function endless(status: number, type: string) {
  const piece = new Uint8Array(1024 ** 2).fill(0x78)
  const read = { bytes: 0, isLeft: false }
  const body = new ReadableStream({
    pull(controller) {
      read.bytes += piece.length
      if (read.bytes > 1024 ** 3) controller.error(new Error('read on'))
      else controller.enqueue(piece)
    },
    cancel() {
      read.isLeft = true
    },
  })
  const fetched = eventStreamFetch(
    async () => new Response(body, { status, headers: { 'content-type': type } }),
    (text) => text,
  )
  return { read, answer: fetched('http://vendor.example') }
}

t.test('a refusal without an end is read as far as words are looked for in it', async (t) => {
  const { read, answer } = endless(500, 'text/plain')
  const { status, body } = await answer
  t.equal(status, 500)
  t.ok((await new Response(body).text()).length < 8 * 1024 ** 2)
  // from Node 24 on, a source is left a little after what was read of it has ended
  await until(() => read.isLeft)
})

for (const type of ['text/event-stream', 'text/plain'])
  t.test(`an event without an end, as ${type}, is not read on`, async (t) => {
    const { read, answer } = endless(200, type)
    await t.rejects((await answer).text(), {
      message: 'The provider wrote an event of more than 64 MiB, which is not read.',
    })
    t.ok(read.isLeft)
  })

/** What is left of an answer in these pieces, each of which stands for as many as come to more than an event may be long. */
async function readWhole(type: string, pieces: readonly Uint8Array[]): Promise<number> {
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  let left = Math.ceil(EVENT_LIMIT / bytes) + 1
  const body = new ReadableStream({
    pull(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      if (--left === 0) controller.close()
    },
  })
  const fetched = eventStreamFetch(
    async () => new Response(body, { headers: { 'content-type': type } }),
    (text) => text,
  )
  let read = 0
  for await (const { length } of (await fetched('http://vendor.example')).body!) read += length
  return read
}
const EVENT_LIMIT = 64 * 1024 ** 2

const utf8 = (text: string) => new TextEncoder().encode(text)
const long = `data: ${'x'.repeat(1024 ** 2)}`

for (const [ends, pieces] of [
  ['in one piece', [`${long}\n\n`]],
  ['in two pieces', [`${long}\n`, '\n']],
  ['in three pieces, with CRLF', [`${long}\r\n`, '\r', '\n']],
  ['with CR alone', [`${long}\r`, '\r']],
] as const)
  t.test(`a long answer of events that end ${ends} is read whole`, async (t) => {
    t.ok((await readWhole('text/event-stream', pieces.map(utf8))) > EVENT_LIMIT)
  })

const framed = (length: number) => {
  const bytes = new Uint8Array(1024 ** 2 + 7)
  new DataView(bytes.buffer).setUint32(0, length)
  return bytes
}

t.test("a long answer in Amazon's frames is read whole, and one frame without an end is not", async (t) => {
  const type = 'application/vnd.amazon.eventstream'
  const frame = framed(1024 ** 2 + 7)
  t.ok((await readWhole(type, [frame.subarray(0, 3), frame.subarray(3)])) > EVENT_LIMIT)
  await t.rejects(readWhole(type, [framed(2 ** 31)]), { message: /more than 64 MiB/ })
})

t.test('an answer whose last event comes in pieces ends with it, and what stays open behind it is left', async (t) => {
  const last = 'event: message_stop\r\ndata: {"type":"message_stop"}\r\n\r\n'
  const read = async (said: string[], goesOn: (controller: ReadableStreamDefaultController) => void) => {
    const left = new Promise<void>((resolve) => {
      const pieces = said.map(utf8)
      const body = new ReadableStream({
        pull: (controller) => (pieces[0] ? controller.enqueue(pieces.shift()) : goesOn(controller)),
        cancel: () => resolve(),
      })
      const fetched = eventStreamFetch(
        async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
        (text) => text,
      )
      fetched('http://vendor.example')
        .then((response) => response.text())
        .then((text) => t.ok(text.endsWith(last)))
    })
    await left
  }
  for (let cut = 1; cut < last.length; cut++)
    await read([': hi\r\n\r\n', last.slice(0, cut), last.slice(cut)], (controller) => controller.enqueue(utf8('\n')))
  await read([last], () => {})
})
