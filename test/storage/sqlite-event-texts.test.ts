import t from 'tap'
import type { Call } from '../../src/storage/sql/call-queue.js'
import { EventTexts } from '../../src/storage/sqlite/event-texts.js'

const MB = 1024 * 1024

const write = (texts: string[]): Call => [
  'journal.write',
  { id: 'one', reservedSeq: 0, seqs: texts.map((_, n) => n), texts },
]
const textsOf = (calls: readonly Call[]) =>
  calls.flatMap(([, write]) => (write as { texts?: (string | Uint8Array)[] } | undefined)?.texts ?? [])

t.test('texts of a batch come out as they went in; what finds no room goes within the message', async (t) => {
  const sender = new EventTexts()
  const { memory } = sender
  const receiver = new EventTexts(memory)
  for (const [texts, within] of [
    [['', '{"a":"é界🥊"}', 'x'.repeat(1_000)], 0],
    [['界'.repeat(MB), 'y', '🥊'.repeat(MB)], 1],
    [['z'.repeat(2 * MB)], 1],
    [Array(5).fill('x'.repeat(MB)), 3],
    [['{}'], 0],
    [[], 0],
  ] as const) {
    const calls: Call[] = [['probe.write'], write([...texts]), write(['last'])]
    sender.put(calls)
    // as through a message
    const received = structuredClone(calls)
    receiver.take(received)
    t.same(
      textsOf(received).map((text) => Buffer.from(text as Uint8Array).toString()),
      [...texts, 'last'],
    )
    t.equal(textsOf(received).filter((text) => typeof text === 'string').length, within)
    t.equal(sender.memory, memory, 'memory that was let go of would stay until a garbage collector happens to come by')
  }
})
