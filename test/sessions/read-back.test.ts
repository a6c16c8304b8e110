import t from 'tap'
import type { AttachedFrame } from '../../schemas/frames.js'
import { Attachment } from '../../src/sessions/clients/attachment.js'
import type { JournaledEvent, ReadEvents } from '../../src/sessions/kept/journal.js'
import { EventLog, type LogSlice } from '../../src/sessions/log/event-log.js'
import { eventsPage } from '../../src/sessions/log/events-page.js'
import type { Session } from '../../src/sessions/session.js'
import { until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'

const EVENTS = 500
const KB = 1024
const ALL = Array.from({ length: EVENTS }, (_, n) => n + 1)

/** A log of events of 1 KB of which nearly all have left the memory, and how often the journal was asked for them. */
function logOnDisk() {
  const kept: JournaledEvent[] = []
  const reads: number[] = []
  const released: number[] = []
  const log: EventLog = new EventLog('epoch', { maxEvents: 10, maxBytes: 16 * KB }, 0, {
    oldestSeq: 1,
    onAppended: (seq, json) => kept.push({ seq, json: json! }),
    async read(afterSeq, untilSeq, maxBytes) {
      reads.push(afterSeq)
      let bytes = 0
      const events: ReadEvents = kept.filter(({ seq, json }) => {
        if (seq <= afterSeq || seq > untilSeq) return false
        bytes += json.length
        return bytes <= maxBytes
      })
      events.release = () => {
        released.push(afterSeq)
        events.length = 0
      }
      return events
    },
  })
  for (const seq of ALL) {
    log.append({ type: 'session_error', message: `${seq}`.padEnd(KB) }, 1)
    log.show(seq)
  }
  return { log, reads, released }
}

const attached = { type: 'attached', replayingFrom: 0 } as AttachedFrame
const seqsOf = ({ frames }: FakeSink) => frames.flatMap((frame) => (frame.type === 'event' ? frame.event.seq : []))

t.test('a client far behind reads many batches from disk at once, and has each event once', async (t) => {
  const { log, reads, released } = logOnDisk()
  const sink = new FakeSink()
  const client = new Attachment({ log, ended: false }, sink, attached, () => attached)
  await until(() => sink.frames.at(-1)?.type === 'synced', 'that it has all')
  t.same(seqsOf(sink), ALL)
  t.ok(reads.length <= 4, `${reads.length} reads`)
  t.same(released, reads, 'what was read is let go, once')
  t.ok(sink.writes.length > reads.length, 'no write is larger than a batch')
  t.equal(client.cursor, EVENTS)
})

t.test('one that takes its time has them in the same order, and one that leaves has no more', async (t) => {
  const { log, reads } = logOnDisk()
  const sink = new FakeSink()
  sink.slow = true
  const client = new Attachment({ log, ended: false }, sink, attached, () => attached)
  await until(() => sink.writes.length === 1, 'what it is told first')
  client.resume()
  await until(() => sink.writes.length === 2, 'its first batch')
  const first = seqsOf(sink)
  t.same(first, ALL.slice(0, first.length))
  t.equal(client.cursor, first.length, 'it stands where it was written to')
  await new Promise(setImmediate)
  t.ok(reads.length <= 2, 'what it does not take is not read')
  client.resume()
  await until(() => seqsOf(sink).length > first.length, 'the next')
  const second = seqsOf(sink)
  t.same(second, ALL.slice(0, second.length))
  client.detach()
  client.resume()
  await new Promise(setImmediate)
  t.same(seqsOf(sink), second)
})

t.test('a page of events is one read of the disk', async (t) => {
  const { log, reads } = logOnDisk()
  const session = { log, durable: async () => {}, clients: { resolve: () => ({ replayingFrom: 0, truncated: false }) } }
  const page = JSON.parse((await eventsPage(session as unknown as Session, {})).toString())
  t.same(
    page.events.map(({ seq }: { seq: number }) => seq),
    ALL,
  )
  t.equal(page.nextAfterSeq, EVENTS)
  t.equal(reads.length, 1)
  const few = JSON.parse((await eventsPage(session as unknown as Session, { limit: 3 })).toString())
  t.match(few, { nextAfterSeq: 3, lastSeq: EVENTS })
})

t.test('a page is what the log held when it was read, whatever the engine says in the same turn', async (t) => {
  const log: EventLog = new EventLog('epoch', { maxEvents: 100, maxBytes: KB * KB }, 0, undefined, { hold: false })
  const sayMuch = () => {
    for (let n = 0; n < 200; n++)
      log.append({ type: 'engine_event', payload: { type: 'said', text: 'x'.repeat(KB) } }, 0)
  }
  sayMuch()
  const resolve = () => ({ replayingFrom: log.oldestSeq - 1, truncated: false })
  const session = { log, durable: async () => {}, clients: { resolve } }
  const page = eventsPage(session as unknown as Session, {})
  for (let microtask = 0; microtask < 20; microtask++) {
    await undefined
    sayMuch()
  }
  const { events, lastSeq } = JSON.parse((await page).toString())
  t.same(
    events.map(({ seq }: { seq: number }) => seq),
    Array.from({ length: 100 }, (_, n) => lastSeq - 99 + n),
  )
})

/** A socket's end: what it was given goes out as it is then, and it is told whether that was at once. */
class RawSink extends FakeSink {
  readonly given: { frames: Buffer; as: Buffer }[] = []

  override tell(parts: Parameters<FakeSink['tell']>[0]): boolean {
    for (const part of parts)
      if ('frames' in part) this.given.push({ frames: part.frames, as: Buffer.from(part.frames) })
    return super.tell(parts)
  }

  get blocks(): number {
    return new Set(this.given.map(({ frames }: Pick<LogSlice, 'frames'>) => frames.buffer)).size
  }
}

t.test(
  'memory of what was read back is used again once it is written, and never what a socket still holds',
  async (t) => {
    const replayed = async (holds: boolean) => {
      const { log } = logOnDisk()
      const sink = new RawSink()
      sink.holds = holds
      new Attachment({ log, ended: false }, sink, attached, () => attached)
      await until(() => sink.frames.at(-1)?.type === 'synced', 'that it has all')
      t.same(seqsOf(sink), ALL)
      return sink
    }
    const writing = await replayed(false)
    t.ok(writing.given.length >= 8, `${writing.given.length} writes`)
    t.ok(writing.blocks <= 5, `${writing.blocks} blocks`)
    const holding = await replayed(true)
    t.ok(holding.blocks > writing.blocks)
    for (const { frames, as } of holding.given) t.ok(frames.equals(as))
  },
)
