import t from 'tap'
import type { Call } from '../../src/storage/sql/call-queue.js'
import { EventTexts } from '../../src/storage/sqlite/event-texts.js'

const MB = 1024 * 1024

const write = (texts: string[]): Call => [
  'journal.write',
  { id: 'one', reservedSeq: 0, seqs: texts.map((_, n) => n), texts },
]
const textsOf = (calls: readonly Call[]) =>
  calls.flatMap(
    ([, write]) =>
      (write as { texts?: Uint8Array[] } | undefined)?.texts?.map((text) => Buffer.from(text).toString()) ?? [],
  )

t.test('texts of a batch come out as they went in, and what is much is let go of again', async (t) => {
  const sender = new EventTexts()
  let receiver = new EventTexts(sender.memory)
  const sizes: number[] = []
  for (const [texts, isOther] of [
    [['', '{"a":"é界🥊"}', 'x'.repeat(1_000)], false],
    [['界'.repeat(MB), 'y', '🥊'.repeat(MB)], true],
    [['z'.repeat(2 * MB)], false],
    [['{}'], true],
    [[], false],
  ] as const) {
    const calls: Call[] = [['probe.write'], write([...texts]), write(['last'])]
    t.equal(sender.put(calls), isOther)
    if (isOther) receiver = new EventTexts(sender.memory)
    // as through a message
    const received = structuredClone(calls)
    receiver.take(received)
    t.same(textsOf(received), [...texts, 'last'])
    sizes.push(sender.memory.byteLength)
  }
  t.ok(sizes[1]! > 4 * MB, 'it has room for what is much')
  t.equal(sizes.at(-1), sizes[0], 'and no more than before, once that is done')
})
