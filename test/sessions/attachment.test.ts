import fc from 'fast-check'
import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import type { Attachment } from '../../src/sessions/clients/attachment.js'
import type { Session } from '../../src/sessions/session.js'
import { type BuildOptions, buildGateway, SOME_CWD } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const settle = async () => {
  for (let turns = 0; turns < 5; turns++) await turn()
}

async function buildSession(t: Parameters<typeof buildGateway>[0], options: BuildOptions = {}) {
  const world = await buildGateway(t, options)
  const { id } = await world.registry.create({ cwd: SOME_CWD })
  const session = await world.registry.open(id, UNLIMITED)
  await settle()
  return { ...world, session, runner: world.engine.last }
}

t.test('attached, the replay, synced and what happened meanwhile come in this order, once', async (t) => {
  const { session, runner } = await buildSession(t)
  const head = session.log.lastSeq
  const sink = new FakeSink()
  session.attach(sink, {})
  runner.say('while attaching')
  await settle()
  t.same(
    sink.frames.map((frame) => (frame.type === 'event' ? frame.event.seq : frame.type)),
    ['attached', ...Array.from({ length: head }, (_, n) => n + 1), 'synced', head + 1],
  )
  t.match(
    sink.frames.find((frame) => frame.type === 'synced'),
    { seq: head },
  )
})

t.test('whoever comes while a log that is full goes on is attached where it begins by then', async (t) => {
  const { session, runner } = await buildSession(t, { eventLog: { maxEvents: 10 } })
  for (let n = 0; n < 30; n++) runner.say(`${n}`)
  const sink = new FakeSink()
  const { oldestSeq: before } = session.log
  session.attach(sink, {})
  for (let n = 0; n < 15; n++) runner.say('meanwhile')
  await settle()
  t.equal(sink.closed, undefined, 'it could not read anything yet')
  const { oldestSeq, lastSeq } = session.log
  t.equal(oldestSeq, before + 15)
  t.match(sink.frames[0], {
    ...{ type: 'attached', truncated: true, oldestSeq, replayingFrom: oldestSeq - 1 },
    session: { lastSeq, attachedClients: 1 },
  })
  t.same(
    sink.events.map(({ seq }) => seq),
    Array.from({ length: 10 }, (_, index) => oldestSeq + index),
  )
  t.match(sink.frames.at(-1), { type: 'synced', seq: lastSeq })
})

t.test('all that happens in one turn is one write', async (t) => {
  const { session, runner } = await buildSession(t)
  const sink = new FakeSink()
  session.attach(sink, { afterSeq: session.log.lastSeq })
  await settle()
  const writes = sink.writes.length
  for (let n = 0; n < 20; n++) runner.say(`${n}`)
  await settle()
  t.equal(sink.writes.length, writes + 1)
  t.equal(sink.writes.at(-1)?.length, 20)
})

t.test(
  'what a person is asked is written before observers are told, with what came before it in its turn',
  async (t) => {
    const { registry, session, runner } = await buildSession(t)
    const sink = new FakeSink()
    session.attach(sink, { afterSeq: session.log.lastSeq })
    await settle()
    const writes = sink.writes.length
    const types = () =>
      sink.writes.slice(writes).map((frames) => frames.map((frame) => 'event' in frame && frame.event.type))
    let sentByThen: unknown
    registry.on('session_event', ({ event }) => {
      if (event.type === 'permission_requested') sentByThen = types()
    })
    runner.say('May I?')
    void runner.host.requestPermission({ toolName: 'fs_write', toolUseId: 'tool-1', input: {} })
    await settle()
    t.same(sentByThen, [['assistant_message', 'permission_requested']])
    t.same(
      types(),
      [['assistant_message', 'permission_requested'], ['status_changed']],
      'the rest of the turn is one write',
    )
  },
)

t.test('however much a person is asked in one turn, it is two writes', async (t) => {
  const { session, runner } = await buildSession(t)
  const sink = new FakeSink()
  session.attach(sink, { afterSeq: session.log.lastSeq })
  await settle()
  const [writes, events] = [sink.writes.length, sink.events.length]
  for (let n = 0; n < 20; n++)
    void runner.host.requestPermission({ toolName: 'fs_write', toolUseId: `tool-${n}`, input: {} })
  await settle()
  t.equal(sink.writes.length - writes, 2)
  t.same(
    sink.events.slice(events).map(({ seq }) => seq),
    Array.from({ length: 21 }, (_, n) => session.log.lastSeq - 20 + n),
  )
  void runner.host.requestPermission({ toolName: 'fs_write', toolUseId: 'tool-20', input: {} })
  t.equal(sink.writes.length - writes, 3, 'in the next turn at once again')
})

t.test('a client that does not read is written nothing more, and goes on where it stood', async (t) => {
  const { session, runner } = await buildSession(t)
  const sink = new FakeSink()
  sink.slow = true
  const attachment = session.attach(sink, { afterSeq: session.log.lastSeq })
  await settle()
  const writes = sink.writes.length
  for (let n = 0; n < 20; n++) {
    runner.say(`${n}`)
    await turn()
  }
  t.equal(sink.writes.length, writes)
  sink.slow = false
  attachment.resume()
  await settle()
  t.equal(sink.events.length, 20)
})

t.test('a client that fell out of what is kept is told to come back', async (t) => {
  const { session, runner } = await buildSession(t, { eventLog: { maxEvents: 10 } })
  const sink = new FakeSink()
  sink.slow = true
  const attachment = session.attach(sink, { afterSeq: session.log.lastSeq })
  await settle()
  for (let n = 0; n < 20; n++) runner.say(`${n}`)
  sink.slow = false
  attachment.resume()
  await settle()
  t.match(sink.closed, { code: 1013 })
  const back = new FakeSink()
  session.attach(back, { afterSeq: 2 })
  await settle()
  t.match(back.frames[0], { type: 'attached', truncated: true, oldestSeq: session.log.oldestSeq })
  t.equal(back.events.length, 10)
})

t.test('a client that leaves its answers unread is cut off', async (t) => {
  const { session } = await buildSession(t)
  const sink = new FakeSink()
  sink.slow = true
  const attachment = session.attach(sink, {})
  await settle()
  for (let n = 0; n < 1_001; n++) attachment.send({ type: 'ack', id: `${n}` })
  t.match(sink.closed, { code: 1013 })
})

t.test('places that the log cannot go on from are answered honestly', async (t) => {
  const { session } = await buildSession(t)
  const { lastSeq, epoch } = session.log
  t.match(session.clients.attachedFrame({ afterSeq: 1, epoch }), { truncated: false, replayingFrom: 1 })
  t.match(session.clients.attachedFrame({ afterSeq: lastSeq }), { truncated: false, replayingFrom: lastSeq })
  t.match(session.clients.attachedFrame({ afterSeq: lastSeq + 1 }), { truncated: true, replayingFrom: 0 })
  t.match(session.clients.attachedFrame({ afterSeq: 1, epoch: 'another' }), { truncated: true, replayingFrom: 0 })
})

t.test('who is there sees a message being typed, who comes later sees it whole', async (t) => {
  const { session, runner } = await buildSession(t)
  const sink = new FakeSink()
  session.attach(sink, { afterSeq: session.log.lastSeq })
  for (const piece of ['one ', 'two ', 'three']) runner.delta(piece, 'm')
  runner.say('one two three', 'm')
  await settle()
  t.same(
    sink.events.map(({ type }) => type),
    ['stream_delta', 'stream_delta', 'stream_delta', 'assistant_message'],
  )
  const late = new FakeSink()
  session.attach(late, {})
  await settle()
  t.notOk(late.events.some(({ type }) => type === 'stream_delta'))
})

t.test('a long replay goes in slices, a turn apart', async (t) => {
  const { session, runner } = await buildSession(t)
  for (let n = 0; n < 1_000; n++) runner.say('x'.repeat(1_000))
  const sink = new FakeSink()
  session.attach(sink, {})
  await turn()
  t.ok(sink.events.length < 100, 'the first turn sends a slice')
  while (sink.frames.at(-1)?.type !== 'synced') await turn()
  t.equal(sink.events.length, session.log.lastSeq)
})

t.test('property: whatever is said, whoever leaves, stalls and returns, every view equals the log', async (t) => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('say' as const), size: fc.nat(5_000) }) },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('type' as const), uuid: fc.constantFrom('a', 'b') }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('finish' as const), uuid: fc.constantFrom('a', 'b') }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), client: fc.nat(3) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('return' as const), client: fc.nat(3), backBy: fc.nat(5) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('stall' as const), client: fc.nat(3) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('read' as const), client: fc.nat(3) }) },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 200, size: 'max' }),
      fc.integer({ min: 20, max: 400 }),
      async (steps, maxEvents) => {
        const { session, runner, gateway } = await buildSession(t, { eventLog: { maxEvents } })
        const clients = [0, 1, 2, 3].map(() => new Visitor(session))
        for (const step of steps) {
          const visitor = 'client' in step ? clients[step.client]! : clients[0]!
          if (step.do === 'say') runner.say('x'.repeat(step.size))
          else if (step.do === 'type') runner.delta('x', step.uuid)
          else if (step.do === 'finish') runner.say('whole', step.uuid)
          else if (step.do === 'turn') await turn()
          else if (step.do === 'drop') visitor.drop()
          else if (step.do === 'return') visitor.come(step.backBy)
          else if (step.do === 'stall') visitor.stall()
          else visitor.read()
        }
        for (const visitor of clients) {
          visitor.read()
          visitor.drop()
          visitor.come(0)
        }
        const { lastSeq } = session.log
        for (let turns = 0; turns < 500 && clients.some((visitor) => visitor.lastSeq < lastSeq); turns++) await turn()
        await settle()
        for (const visitor of clients) visitor.assertEquals(session)
        await gateway.close()
      },
    ),
    { numRuns: 60 },
  )
})

/** A client that comes and goes, and remembers what it saw. */
class Visitor {
  readonly #session: Session
  readonly #seen = new Map<number, string>()
  /** Ranges of seq that the gateway said are not kept. */
  readonly #told: { from: number; to: number }[] = []
  #attachment: Attachment | undefined
  #sink = new FakeSink()
  #taken = 0
  #from = 0

  constructor(session: Session) {
    this.#session = session
  }

  get lastSeq(): number {
    this.#take()
    return Math.max(this.#from, ...this.#seen.keys())
  }

  come(backBy: number): void {
    if (this.#attachment && !this.#sink.closed) return
    this.#take()
    const afterSeq = Math.max(0, this.lastSeq - backBy)
    this.#sink = new FakeSink()
    this.#taken = 0
    this.#from = afterSeq
    this.#attachment = this.#session.attach(this.#sink, { afterSeq, epoch: this.#session.log.epoch })
  }

  drop(): void {
    this.#take()
    if (this.#attachment) this.#session.detach(this.#attachment)
    this.#attachment = undefined
  }

  stall(): void {
    this.#sink.slow = true
  }

  read(): void {
    this.#sink.slow = false
    this.#attachment?.resume()
  }

  #take(): void {
    let previous = this.#from
    for (const frame of this.#sink.frames.slice(this.#taken)) {
      if (frame.type === 'attached' && frame.truncated) {
        this.#told.push({ from: this.#from, to: frame.oldestSeq - 1 })
        previous = frame.replayingFrom
      }
      if (frame.type !== 'event') continue
      const { seq } = frame.event
      const text = JSON.stringify(frame.event)
      if (seq <= previous && this.#taken === 0) throw new Error(`seq ${seq} came after ${previous}`)
      if (this.#seen.has(seq) && this.#seen.get(seq) !== text) throw new Error(`seq ${seq} changed`)
      this.#seen.set(seq, text)
      previous = seq
    }
    this.#taken = this.#sink.frames.length
  }

  assertEquals(session: Session): void {
    this.#take()
    const slices = new FakeSink()
    const { log } = session
    for (let cursor = log.oldestSeq - 1; cursor < log.lastSeq; ) {
      const slice = log.read(cursor, log.lastSeq, 1_000_000)
      if (!slice || slice === 'evicted') break
      slices.tell([slice])
      cursor = slice.lastSeq
    }
    for (const event of slices.events) {
      const told = this.#told.some(({ from, to }) => event.seq > from && event.seq <= to)
      if (!told && this.#seen.get(event.seq) !== JSON.stringify(event)) throw new Error(`missed seq ${event.seq}`)
    }
  }
}
