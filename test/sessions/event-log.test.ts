import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent, SessionEventBody } from '../../schemas/events.js'
import { DEFAULT_EVENT_LOG_LIMITS, EventLog } from '../../src/sessions/log/event-log.js'

const said = (text: string, uuid = 'm'): SessionEventBody => ({
  type: 'assistant_message',
  message: { role: 'assistant', content: text },
  uuid,
  parentToolUseId: null,
})
const typed = (text: string, uuid: string): SessionEventBody => ({
  type: 'stream_delta',
  uuid,
  blockIndex: 0,
  delta: { type: 'text', text },
  parentToolUseId: null,
})

/** Everything after a place, read in slices of at most so many bytes. */
function readAll(log: EventLog, afterSeq = 0, sliceBytes = 1_000): SessionEvent[] {
  const events: SessionEvent[] = []
  for (let cursor = afterSeq; cursor < log.lastSeq; ) {
    const slice = log.read(cursor, log.lastSeq, sliceBytes)
    if (slice === 'evicted') throw new Error('evicted')
    if (!slice) break
    for (const { json } of slice.events()) events.push(JSON.parse(json.toString()))
    cursor = slice.lastSeq
  }
  return events
}

t.test('seq counts from 1, and an event is read back as it was appended', async (t) => {
  const log = new EventLog('e')
  t.equal(log.lastSeq, 0)
  t.equal(log.oldestSeq, 1)
  t.equal(log.read(0, 0, 100), undefined)
  t.equal(log.append(said('grüße\u2028 🦊'), 5), 1)
  t.same(readAll(log), [{ seq: 1, ts: 5, ...said('grüße\u2028 🦊') }])
})

t.test('where an event stands is not for its engine to say', async (t) => {
  const log = new EventLog('e')
  log.append({ ...said('first'), seq: 7, ts: 9 } as never, 5)
  log.append({ ...said('second'), ts: 9 } as never, 6)
  t.same(readAll(log), [
    { seq: 1, ts: 5, ...said('first') },
    { seq: 2, ts: 6, ...said('second') },
  ])
})

t.test('what the gateway says itself stands in its place among what engines say', async (t) => {
  const log = new EventLog('e')
  const bodies = [
    { type: 'status_changed', status: 'idle' },
    said('hello', 'a'),
    { type: 'status_changed', status: 'failed', detail: 'grüße' },
    { type: 'session_closed', reason: 'error' },
  ] as const
  for (const [index, body] of bodies.entries()) log.append(body, index)
  t.same(
    readAll(log),
    bodies.map((body, index) => ({ seq: index + 1, ts: index, ...body })),
  )
})

t.test('a slice holds whole WebSocket text messages', async (t) => {
  const log = new EventLog('e')
  for (const length of [1, 200, 70_000]) log.append(said('x'.repeat(length)), 1)
  for (let cursor = 0; cursor < 3; cursor++) {
    const slice = log.read(cursor, cursor + 1, 10)
    if (!slice || slice === 'evicted') throw new Error('nothing to read')
    const { frames } = slice
    const [start, length] =
      frames[1]! < 126
        ? [2, frames[1]!]
        : frames[1] === 126
          ? [4, frames.readUInt16BE(2)]
          : [10, Number(frames.readBigUInt64BE(2))]
    t.equal(frames[0], 0x81)
    t.equal(frames.length, start + length)
    t.match(JSON.parse(frames.subarray(start).toString()), { type: 'event', event: { seq: cursor + 1 } })
  }
})

t.test('what is not JSON is refused and changes nothing', async (t) => {
  const log = new EventLog('e')
  const circular: Record<string, unknown> = {}
  circular.self = circular
  t.throws(() => log.append({ type: 'engine_event', payload: circular }, 1), TypeError)
  t.equal(log.lastSeq, 0)
  t.throws(() => log.append({ toJSON: () => ({}) } as never, 1), TypeError)
  t.throws(() => log.append({ toJSON: () => 'text' } as never, 1), TypeError)
  t.throws(() => log.append({ toJSON: () => undefined } as never, 1), TypeError)
  t.equal(log.append(said('next'), 1), 1)
})

t.test('bytes that were handed out are never written again', async (t) => {
  const log = new EventLog('e')
  for (let n = 0; n < 50; n++) log.append(typed(`piece ${n}`, 'a'), 1)
  const slice = log.read(0, 50, 1_000_000)
  if (!slice || slice === 'evicted') throw new Error('nothing to read')
  const before = Buffer.from(slice.frames)
  log.append(said('whole', 'a'), 1)
  log.dropDeltas('a')
  for (let n = 0; n < 500; n++) log.append(said(`more ${n}`, `b${n}`), 1)
  t.ok(before.equals(slice.frames))
})

t.test('deltas leave the log when their message is whole; those of others stay', async (t) => {
  const log = new EventLog('e')
  log.append(said('first', 'z'), 1)
  for (let n = 0; n < 300; n++) log.append(typed('x'.repeat(500), n % 2 ? 'a' : 'b'), 1)
  log.append(said('whole', 'a'), 1)
  log.dropDeltas('a')
  const kept = readAll(log)
  t.equal(kept.length, 152)
  t.notOk(kept.some((event) => event.type === 'stream_delta' && event.uuid === 'a'))
  t.equal(log.oldestSeq, 1, 'nothing was lost that a client would miss')
  t.same(
    readAll(log, 302 - 1).map((event) => event.seq),
    [302],
  )
})

t.test('the oldest events go first, and a cursor among them is told', async (t) => {
  const log = new EventLog('e', { maxEvents: 10, maxBytes: DEFAULT_EVENT_LOG_LIMITS.maxBytes })
  for (let n = 1; n <= 25; n++) log.append(said(`${n}`), 1)
  t.equal(log.oldestSeq, 16)
  t.equal(log.read(14, 25, 100), 'evicted')
  t.same(
    readAll(log, 15).map((event) => event.seq),
    [16, 17, 18, 19, 20, 21, 22, 23, 24, 25],
  )
})

t.test('a log that is full uses its memory again, and never what somebody may still read', async (t) => {
  const readers = { hold: false }
  const log = new EventLog('e', { maxEvents: 100_000, maxBytes: 256 * 1024 }, 0, undefined, readers)
  const blocks = new Set<ArrayBufferLike>()
  const newest = () => {
    const slice = log.read(log.lastSeq - 1, log.lastSeq, 10_000)
    if (!slice || slice === 'evicted') throw new Error('nothing to read')
    blocks.add(slice.frames.buffer)
    return slice
  }
  const fill = () => {
    for (let n = 0; n < 1_000; n++) {
      log.append(said(`${log.lastSeq + 1} `.repeat(200)), 1)
      newest()
    }
  }
  fill()
  const whenFull = blocks.size
  fill()
  fill()
  t.ok(blocks.size <= whenFull + 1, `${blocks.size} blocks, ${whenFull} of them until it was full`)
  const held = newest()
  const before = Buffer.from(held.frames)
  readers.hold = true
  fill()
  t.ok(held.frames.equals(before))
  t.ok(blocks.size > whenFull + 10, 'meanwhile it takes new memory')
  t.same(
    readAll(log, log.oldestSeq - 1).map(({ seq }) => seq),
    Array.from({ length: log.lastSeq - log.oldestSeq + 1 }, (_, index) => log.oldestSeq + index),
  )
})

t.test('an event larger than the limit is kept while it is the newest', async (t) => {
  const log = new EventLog('e', { maxEvents: 10, maxBytes: 1_000 })
  log.append(said('x'.repeat(5_000)), 1)
  t.equal(readAll(log).length, 1)
  log.append(said('y'), 1)
  t.same(
    readAll(log, 1).map((event) => event.seq),
    [2],
  )
})

t.test('a rebuilt log goes on counting', async (t) => {
  const log = new EventLog('e', DEFAULT_EVENT_LOG_LIMITS, 41)
  t.equal(log.append(said('x'), 1), 42)
  t.equal(log.read(3, 42, 100), 'evicted')
  t.equal(log.oldestSeq, 42)
})

t.test('property: any appends, limits and places give what a plain list gives', async () => {
  const body = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ delta: fc.constant(true), uuid: fc.constantFrom('a', 'b', 'c'), size: fc.nat(3_000) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ delta: fc.constant(false), uuid: fc.constantFrom('a', 'b', 'c'), size: fc.nat(90_000) }),
    },
  )
  fc.assert(
    fc.property(
      fc.array(body, { maxLength: 120, size: 'max' }),
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 200_000 }),
      fc.nat(150),
      fc.integer({ min: 1, max: 100_000 }),
      (bodies, maxEvents, maxBytes, afterSeq, sliceBytes) => {
        const log = new EventLog('e', { maxEvents, maxBytes })
        let model: { seq: number; uuid: string; delta: boolean }[] = []
        for (const { delta, uuid, size } of bodies) {
          const seq = log.append(delta ? typed('d'.repeat(size), uuid) : said('m'.repeat(size), uuid), 1)
          if (!delta) log.dropDeltas(uuid)
          if (!delta) model = model.filter((kept) => !(kept.delta && kept.uuid === uuid))
          model.push({ seq, uuid, delta })
        }
        const from = Math.max(afterSeq, log.oldestSeq - 1)
        const expected = model.filter(({ seq }) => seq > from).map(({ seq }) => seq)
        const actual = readAll(log, from, sliceBytes).map((event) => event.seq)
        if (JSON.stringify(actual) !== JSON.stringify(expected))
          throw new Error(`got ${actual.join()} instead of ${expected.join()}`)
        const kept = readAll(log, log.oldestSeq - 1).length
        if (kept > maxEvents) throw new Error(`${kept} events are kept`)
      },
    ),
    { numRuns: 400 },
  )
})
