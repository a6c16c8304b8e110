import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent } from '../../client/index.js'
import { type LogPage, LogWindow } from '../../console/src/model/log-window.js'

const EPOCH = 'one'

/** A log of messages, of which some are tool calls and their results, and of deltas that are not kept: seqs have gaps. */
function logOf(length: number, isKept: (seq: number) => boolean = () => true, text = 'x'): SessionEvent[] {
  const events: SessionEvent[] = []
  for (let seq = 1; seq <= length; seq++) {
    if (!isKept(seq)) continue
    const content =
      seq % 3 === 1
        ? [{ type: 'tool_use', id: `call-${seq}`, name: 'Bash', input: { command: text } }]
        : seq % 3 === 2
          ? [{ type: 'tool_result', tool_use_id: `call-${seq - 1}`, content: text }]
          : [{ type: 'text', text: `${seq} ${text}` }]
    const isUser = seq % 3 === 2
    events.push({
      type: isUser ? 'user_message' : 'assistant_message',
      seq,
      ts: seq,
      uuid: String(seq),
      parentToolUseId: null,
      message: { role: isUser ? 'user' : 'assistant', content },
    } as SessionEvent)
  }
  return events
}

/** As the gateway pages a log, whose pages also end at a size. */
function gatewayOf(log: SessionEvent[], { oldest = 1, pageEvents = 1000 } = {}) {
  let reads = 0
  const read = async ({ afterSeq, limit }: { afterSeq: number; limit: number }): Promise<LogPage> => {
    reads++
    const truncated = afterSeq < oldest - 1
    const from = truncated ? oldest - 1 : afterSeq
    const rest = log.filter(({ seq }) => seq > from && seq >= oldest)
    const events = rest.slice(0, Math.min(limit, pageEvents))
    const lastSeq = log.at(-1)?.seq ?? 0
    return { events, nextAfterSeq: events.at(-1)?.seq ?? from, lastSeq, epoch: EPOCH, truncated }
  }
  return { read, reads: () => reads }
}

const seqsOf = (window: LogWindow): number[] => window.events.map(({ seq }) => seq)

t.test('it opens at the end of a long log with a few requests, and holds a few hundred events', async (t) => {
  const log = logOf(100_000)
  const { read, reads } = gatewayOf(log)
  const window = new LogWindow(read)
  await window.openEnd(100_000)
  t.equal(window.events.at(-1)?.seq, 100_000)
  t.ok(window.atEnd)
  t.notOk(window.atStart)
  t.ok(reads() <= 3, `${reads()} requests`)
  t.ok(window.events.length <= 1_000, `${window.events.length} events`)
})

t.test(
  'going back to the beginning and on to the end meets every event once, and holds no more than it may',
  async (t) => {
    const kept = (seq: number) => seq % 7 !== 0 && !(seq > 2_000 && seq < 9_000)
    const log = logOf(12_000, kept)
    const { read } = gatewayOf(log, { pageEvents: 130 })
    const window = new LogWindow(read, { maxEvents: 900, step: 300 })
    await window.openEnd(12_000)
    const met = new Set(seqsOf(window))
    const meet = () => {
      const seqs = seqsOf(window)
      t.ok(seqs.length <= 1_800, `${seqs.length} events`)
      // nothing is missing between the two ends
      t.strictSame(
        seqs,
        log.map(({ seq }) => seq).filter((seq) => seq >= seqs[0]! && seq <= seqs.at(-1)!),
      )
      for (const seq of seqs) met.add(seq)
    }
    while (await window.earlier()) meet()
    t.ok(window.atStart)
    t.equal(window.events[0]?.seq, 1)
    t.equal(met.size, log.length)
    met.clear()
    meet()
    while (await window.later()) meet()
    t.ok(window.atEnd)
    t.equal(met.size, log.length)
  },
)

t.test('a call and its result come together when the window moves back to the call', async (t) => {
  const { read } = gatewayOf(logOf(600))
  const window = new LogWindow(read, { step: 61 })
  await window.openEnd(600)
  const toolsIn = () =>
    window.transcript.items
      .toArray()
      .flatMap((item) => (item.kind === 'message' ? item.parts : []))
      .flatMap((part) => (part.type === 'tool' ? [part.status] : []))
  while (await window.earlier());
  t.equal(toolsIn().length, 200)
  t.ok(toolsIn().every((status) => status === 'succeeded'))
})

t.test('what happens is shown at the end alone, and nothing that happens while a page is read is lost', async (t) => {
  const log = logOf(3_000)
  const { read } = gatewayOf(log)
  let during = () => {}
  const window = new LogWindow((query) => {
    const page = read(query)
    during()
    return page
  })
  await window.openEnd(3_000)
  const add = () => {
    const [event] = logOf(log.length + 1, (seq) => seq === log.length + 1)
    log.push(event!)
    return window.append([event!])
  }
  t.ok(add())
  t.equal(window.events.at(-1)?.seq, 3_001)
  await window.openAt(1_000)
  t.notOk(window.atEnd)
  t.notOk(add(), 'it is elsewhere')
  during = () => {
    during = () => {}
    // after the page was made, before it came
    queueMicrotask(add)
  }
  while (await window.later());
  t.ok(window.atEnd)
  t.equal(window.events.at(-1)?.seq, log.at(-1)?.seq)
  t.equal(window.append(log.slice(-2)), false, 'nothing comes twice')
})

t.test('the end of a log that goes on with every page that is read is reached', async (t) => {
  const log = logOf(3_000)
  const { read } = gatewayOf(log)
  let spoken = 0
  const window: LogWindow = new LogWindow(async (query) => {
    const page = await read(query)
    // after the page was made, before it came
    const event = { ...log[0]!, seq: log.length + 1 }
    log.push(event)
    window.append([event])
    spoken++
    return page
  })
  await window.openAt(1_000)
  await window.openEnd(log.length)
  t.ok(window.atEnd)
  t.ok(spoken > 2)
  const seqs = seqsOf(window)
  t.strictSame(
    seqs,
    log.slice(-seqs.length).map(({ seq }) => seq),
  )
})

t.test('a log that does not reach back says so, and another log is another one', async (t) => {
  const { read } = gatewayOf(logOf(5_000), { oldest: 4_800 })
  const window = new LogWindow(read)
  await window.openEnd(5_000)
  while (await window.earlier());
  t.ok(window.atStart)
  t.ok(window.isCut)
  t.equal(window.events[0]?.seq, 4_800)
  await window.openAt(0)
  t.equal(window.events[0]?.seq, 4_800)
  t.ok(window.isCut, 'whoever goes to its beginning is told, too')

  let epoch = 'one'
  const whole = gatewayOf(logOf(5_000))
  const other = new LogWindow(async (query) => ({ ...(await whole.read(query)), epoch }))
  await other.openEnd(5_000)
  epoch = 'two'
  await t.rejects(other.earlier(), { name: 'Error' })
})

t.test('of huge events few are held, and never none', async (t) => {
  const log = logOf(400, () => true, 'y'.repeat(3_000_000))
  const window = new LogWindow(gatewayOf(log, { pageEvents: 3 }).read, { maxChars: 1_000_000 })
  await window.openEnd(400)
  t.ok(window.events.length >= 1 && window.events.length <= 20, `${window.events.length} events`)
  t.ok(window.isFull, 'so that it is not filled again at once')
})

t.test('typing that was written is not kept in the window', async (t) => {
  const window = new LogWindow(gatewayOf([]).read)
  await window.openEnd(0)
  const delta = (seq: number): SessionEvent => ({
    type: 'stream_delta',
    seq,
    ts: 1,
    uuid: 'm',
    blockIndex: 0,
    delta: { type: 'text', text: 'a' },
    parentToolUseId: null,
  })
  window.append(Array.from({ length: 500 }, (_, index) => delta(index + 1)))
  t.equal(window.transcript.streaming.length, 1)
  const whole = {
    type: 'assistant_message',
    seq: 501,
    ts: 1,
    uuid: 'm',
    parentToolUseId: null,
    message: { role: 'assistant', content: 'aaa' },
  }
  window.append([whole as SessionEvent])
  t.equal(window.transcript.streaming.length, 0)
  await window.openAt(0)
  t.equal(window.events.length, 0, 'and a log without it does not have it')
})

t.test('what is typed costs no room: neither the beginning of it nor what was said before goes', async (t) => {
  const window = new LogWindow(gatewayOf([]).read, { maxEvents: 100 })
  await window.openEnd(0)
  let seq = 0
  const type = (uuid: string, chars: number) => {
    for (const type of ['thinking', 'text'] as const)
      for (let at = 0; at < chars; at++)
        window.append([
          {
            type: 'stream_delta',
            seq: ++seq,
            ts: 1,
            uuid,
            blockIndex: 0,
            delta: { type, text: String(at % 10) },
            parentToolUseId: null,
          },
        ])
  }
  for (let message = 0; message < 60; message++) {
    type(`m${message}`, 40)
    const content = { role: 'assistant', content: `message ${message}` }
    const whole = {
      type: 'assistant_message',
      seq: ++seq,
      ts: 1,
      uuid: `m${message}`,
      parentToolUseId: null,
      message: content,
    }
    window.append([whole as SessionEvent])
  }
  t.equal(window.transcript.items.length, 60)
  type('long', 1_000)
  t.equal(window.transcript.items.length, 60)
  const text = Array.from({ length: 1_000 }, (_, at) => at % 10).join('')
  t.match(window.transcript.streaming[0]?.parts, [{ type: 'text', text }])
  t.ok(window.events.length <= 100, `${window.events.length} events`)
})

t.test('however it is moved, it is a part of the log without holes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.constant('earlier'),
          fc.constant('later'),
          fc.constant('append'),
          fc.constant('end'),
          fc.nat(1_500),
        ),
        { maxLength: 25 },
      ),
      fc.integer({ min: 10, max: 400 }),
      async (moves, step) => {
        const log = logOf(1_500, (seq) => seq % 5 !== 0)
        const window = new LogWindow(gatewayOf(log, { pageEvents: 97 }).read, { step, maxEvents: 300 })
        await window.openEnd(1_500)
        for (const move of moves) {
          if (move === 'earlier') await window.earlier()
          else if (move === 'later') await window.later()
          else if (move === 'end') await window.openEnd(log.at(-1)!.seq)
          else if (move === 'append') {
            const seq = log.at(-1)!.seq + 1
            const [event] = logOf(seq, (other) => other === seq)
            log.push(event!)
            window.append([event!])
          } else await window.openAt(move as number)
          const seqs = seqsOf(window)
          const [first = 0, last = 0] = [seqs[0], seqs.at(-1)]
          const whole = log.map(({ seq }) => seq).filter((seq) => seq >= first && seq <= last)
          if (JSON.stringify(seqs) !== JSON.stringify(whole)) return false
          if (window.atEnd && last !== log.at(-1)!.seq) return false
          if (window.atStart && first !== 1) return false
        }
        return true
      },
    ),
    { numRuns: 60 },
  )
})

t.test('where what is elsewhere cannot be read, it stays where it was', async (t) => {
  const log = logOf(3_000)
  const { read } = gatewayOf(log)
  let fails = false
  const window = new LogWindow(async (query) => {
    if (fails) throw new Error('away')
    return read(query)
  })
  await window.openEnd(3_000)
  const before = seqsOf(window)
  fails = true
  await t.rejects(window.openAt(1), { message: 'away' })
  t.strictSame(seqsOf(window), before)
  t.ok(window.atEnd)
  const moving = window.openAt(1)
  const [event] = logOf(3_001, (seq) => seq === 3_001)
  log.push(event!)
  window.append([event!])
  await t.rejects(moving)
  t.notOk(window.atEnd, 'what happened meanwhile is to be read')
  fails = false
  await window.later()
  t.strictSame(seqsOf(window), [...before, 3_001])
  t.ok(window.atEnd)
  await window.earlier()
  t.equal(window.events.at(-1)?.seq, 3_001, 'and goes on from there')
  t.ok(window.events.length > before.length)
})

t.test(
  'steps that are asked for at once, and read in vain now and then, leave no holes and nothing twice',
  async () => {
    const move = fc.oneof(
      fc.constant('earlier'),
      fc.constant('later'),
      fc.constant('append'),
      fc.constant('end'),
      fc.nat(900),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(move, fc.nat(6)), { maxLength: 40 }),
        fc.infiniteStream(fc.boolean()),
        async (moves, failures) => {
          const log = logOf(900)
          const { read } = gatewayOf(log, { pageEvents: 97 })
          let isFirst = true
          const window = new LogWindow(
            async (query) => {
              const page = await read(query)
              if (!isFirst && failures.next().value) throw new Error('away')
              return page
            },
            { step: 40, maxEvents: 120 },
          )
          await window.openEnd(900)
          isFirst = false
          const under: Promise<unknown>[] = []
          for (const [move, turns] of moves) {
            if (move === 'append') {
              const from = log.length
              const events = logOf(from + 50, (seq) => seq > from)
              log.push(...events)
              window.append(events)
            } else if (move === 'earlier') under.push(window.earlier())
            else if (move === 'later') under.push(window.later())
            else if (move === 'end') under.push(window.openEnd(log.length))
            else under.push(window.openAt(move as number))
            for (let turn = 0; turn < turns; turn++) await Promise.resolve()
          }
          await Promise.allSettled(under)
          const seqs = seqsOf(window)
          const [first = 0, last = 0] = [seqs[0], seqs.at(-1)]
          if (seqs.length !== (seqs.length && last - first + 1)) throw new Error(`holes, or twice: ${seqs}`)
          if (window.atEnd && last !== log.length) throw new Error(`${last} is not the end, ${log.length}`)
          if (window.atStart && first !== 1) throw new Error(`${first} is not the beginning`)
        },
      ),
      { numRuns: 300 },
    )
  },
)

t.test('what happens while what came before is read leaves no hole between them', async (t) => {
  const log = logOf(500)
  const { read } = gatewayOf(log)
  let during = () => {}
  const window = new LogWindow(
    (query) => {
      const page = read(query)
      during()
      return page
    },
    { step: 40, maxEvents: 120 },
  )
  await window.openEnd(500)
  during = () => {
    during = () => {}
    const events = logOf(620, (seq) => seq > 500)
    log.push(...events)
    // while the page is on its way
    queueMicrotask(() => window.append(events))
  }
  await window.earlier()
  const seqs = seqsOf(window)
  t.strictSame(
    seqs,
    Array.from(seqs, (_, at) => seqs[0]! + at),
  )
})

t.test('a step that is never answered does not let it grow beyond its limits', async (t) => {
  const log = logOf(500)
  const { read } = gatewayOf(log)
  let answer = Promise.resolve()
  let release = () => {}
  const limits = { step: 40, maxEvents: 120 }
  const window = new LogWindow((query) => answer.then(() => read(query)), limits)
  await window.openEnd(500)
  answer = new Promise((resolve) => {
    release = resolve
  })
  const step = window.earlier()
  for (let part = 0; part < 20; part++) {
    const from = log.length
    const events = logOf(from + 50, (seq) => seq > from)
    log.push(...events)
    window.append(events)
  }
  t.ok(window.events.length <= limits.maxEvents + 50, `${window.events.length} events`)
  t.notOk(window.atEnd, 'the rest is to be read')
  release()
  await step
  while (await window.later());
  const seqs = seqsOf(window)
  t.equal(seqs.at(-1), 1_500)
  t.strictSame(
    seqs,
    Array.from(seqs, (_, at) => seqs[0]! + at),
  )
})
