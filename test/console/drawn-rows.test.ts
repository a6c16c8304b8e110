import t from 'tap'
import { emptyTranscript, foldTranscript, type SessionEvent, type TranscriptItem } from '../../client/index.js'
import { type Drawn, grown, SLICE } from '../../console/src/model/drawn-rows.js'
import { rowsOf } from '../../console/src/model/transcript-rows.js'

const rowsFrom = (first: number, count: number, text = 'x'): TranscriptItem[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ kind: 'message', seq: first + index, ts: 1, uuid: String(first + index), role: 'assistant' },
    parts: [{ type: 'text', text }],
  })) as unknown as TranscriptItem[]

/** Draws until nothing is left. @returns each step, as seqs */
function drawAll(rows: TranscriptItem[], from?: Drawn, seq?: number): number[][] {
  const steps: number[][] = []
  for (let drawn = from; ; ) {
    const next = grown(rows, drawn, seq)
    steps.push(rows.slice(next.first, next.end).map((row) => row.seq))
    if (next.end - next.first === rows.length || steps.length > 1_000) return steps
    drawn = next.drawn
  }
}

t.test('a transcript is drawn from its end in slices, each whole and none large', async (t) => {
  const steps = drawAll(rowsFrom(1, 100))
  t.ok(steps.length > 5)
  for (const [index, seqs] of steps.entries()) {
    t.equal(seqs.at(-1), 100)
    t.strictSame(
      seqs,
      seqs.map((_, place) => seqs[0]! + place),
      'without a hole',
    )
    t.ok(seqs.length - (steps[index - 1]?.length ?? 0) <= SLICE)
  }
  t.strictSame(drawAll([]), [[]])
})

t.test('what comes above or below is drawn at once as far as it is little', async (t) => {
  const drawn = { from: 41, to: 60 }
  t.equal(grown(rowsFrom(41, 21), drawn).end, 21, 'a line more')
  const above = grown(rowsFrom(1, 60), drawn)
  t.strictSame([above.first, above.end], [40 - SLICE, 60])
  const both = drawAll(rowsFrom(1, 100), drawn)
  t.equal(both[0]!.at(-1), 60 + SLICE, 'below first')
  t.equal(both.at(-1)!.length, 100)
  t.strictSame(grown(rowsFrom(51, 20), drawn).first, 0, 'what was let go of is not missed')
})

t.test('it begins around the line that is looked for, and anew where the window is another one', async (t) => {
  const [first] = drawAll(rowsFrom(1, 100), undefined, 50)
  t.ok(first!.includes(50))
  t.ok(first!.includes(45) && first!.includes(52), 'with lines above and below it')
  t.ok(first!.length <= SLICE + 1)
  t.ok(drawAll(rowsFrom(1, 100), { from: 80, to: 100 }, 10)[0]!.includes(10), 'a line that is not drawn yet')
  t.equal(drawAll(rowsFrom(500, 100), { from: 1, to: 90 })[0]!.at(-1), 599, 'an end that is new')
  t.equal(drawAll(rowsFrom(1, 100), { from: 500, to: 590 })[0]!.at(-1), 100)
  t.equal(drawAll(rowsFrom(10, 5), undefined, 3)[0]![0], 10, 'a line before the first')
})

t.test('of long texts fewer are drawn at once, and never none', async (t) => {
  const steps = drawAll(rowsFrom(1, 10, 'y'.repeat(50_000)))
  t.ok(steps.length >= 9)
  for (const [index, seqs] of steps.entries()) t.ok(seqs.length > (steps[index - 1]?.length ?? 0))
})

t.test('what a helper writes stands with its call, while it is written and after', async (t) => {
  const message = (seq: number, content: object[], parentToolUseId: string | null, uuid = `m${seq}`) =>
    ({
      ...{ type: 'assistant_message', seq, ts: 1, uuid, parentToolUseId },
      message: { role: 'assistant', content },
    }) as unknown as SessionEvent
  const call = (id: string) => ({ type: 'tool_use', id, name: 'Agent', input: {} })
  const delta = (seq: number, parentToolUseId: string | null) =>
    ({
      ...{ type: 'stream_delta', seq, ts: 1, uuid: `m${seq}`, blockIndex: 0, parentToolUseId },
      delta: { type: 'text', text: 'so' },
    }) as SessionEvent
  const said = [
    message(1, [call('outer')], null),
    message(2, [call('inner')], 'outer'),
    delta(3, 'inner'),
    delta(4, null),
    delta(5, 'gone'),
  ]
  const { rows, nested, streaming } = rowsOf(foldTranscript(said))
  t.strictSame(
    rows.map(({ seq }) => seq),
    [1],
  )
  t.strictSame(
    nested.get('outer')?.items.map(({ seq }) => seq),
    [2],
  )
  t.strictSame(
    nested.get('inner')?.streaming.map(({ uuid }) => uuid),
    ['m3'],
  )
  t.strictSame(
    streaming.map(({ uuid }) => uuid),
    ['m4', 'm5'],
    'of a call that is not in the window it stands at the end',
  )
  const written = rowsOf(foldTranscript([...said, message(6, [{ type: 'text', text: 'so' }], 'inner', 'm3')]))
  t.strictSame(
    written.nested.get('inner')?.items.map(({ seq }) => seq),
    [6],
  )
  t.strictSame(written.nested.get('inner')?.streaming, [])
  t.equal(rowsOf(emptyTranscript).rows.length, 0)
})
