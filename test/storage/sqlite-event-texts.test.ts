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
    // as through a message
    const received = receiver.take(structuredClone(sender.put(calls)))
    t.same(
      textsOf(received).map((text) => Buffer.from(text as Uint8Array).toString()),
      [...texts, 'last'],
    )
    t.equal(textsOf(received).filter((text) => typeof text === 'string').length, within)
    t.equal(sender.memory, memory, 'memory that was let go of would stay until a garbage collector happens to come by')
  }
})

t.test('a write comes out with all that went in; what is sent of one that has events alone is values', async (t) => {
  const memory = new EventTexts()
  const through = (call: Call) => new EventTexts(memory.memory).take(structuredClone(memory.put([call])))
  const kept = { number: 1, type: 'idle', sessionId: 'one', profile: 'p', ts: 2, json: '{}' }
  const writes: object[] = [
    { id: 'one', reservedSeq: 7, seqs: [], texts: [], state: '{"a":"é"}' },
    { id: 'one', reservedSeq: 0, seqs: [], texts: [], taken: ['removal'] },
    {
      ...{
        id: 'one',
        reservedSeq: 1_000,
        seqs: [1, 2],
        texts: ['{}', '{"b":1}'],
        state: '{}',
        snapshot: '',
        executions: ['e1'],
      },
      origin: { profile: 'p', generation: 'g', text: '{}' },
      rest: { ended: 'closed', endedAt: 1, asleep: null, wakesAt: null, sdkSession: null, engine: 'cli', place: 3 },
      taken: [],
      keys: [{ key: 'k', fingerprint: 'f', made: '{}', since: 1 }],
      deliveries: [{ lane: 'l', id: 'd', delivery: '{}' }],
      notifications: [kept, { ...kept, number: 2 }],
      usage: [{ day: '2026-01-01', profile: 'p', agent: 'cli', person: '', turns: 1 }],
    },
  ]
  for (const one of writes) {
    const [name, got] = through(['journal.write', one])[0] as [string, { texts: Uint8Array[] }]
    t.equal(name, 'journal.write')
    const texts = got.texts.map((text) => Buffer.from(text).toString())
    t.strictSame(JSON.parse(JSON.stringify({ ...got, texts })), one, 'and nothing else')
  }
  const [sent] = memory.put([write(['{}', '{}'])])
  t.ok(
    sent!.every((value) => typeof value !== 'object'),
    'no object, whose members go by name',
  )
  const call: Call = ['jobs.get', 'one']
  t.same(through(call), [call])
})
