import t from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, echo, eventsOf } from '../fixtures/journaled.js'
import { ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

t.test('a session answers a new process as it answered the one before', async (t) => {
  const { registry, again, eventsOf: before } = await buildJournaled(t, { script: echo() })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first', title: 'Mine', meta: { a: 1 } })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await (await registry.open(id, UNLIMITED)).durable()
  const known = (await registry.get(id))!
  const events = await before(id)

  const { registry: next, engine } = await again()
  const info = (await next.get(id))!
  t.same({ ...info, lastSeq: 0, lastActivityAt: 0 }, { ...known, lastSeq: 0, lastActivityAt: 0 })
  t.ok(info.lastSeq >= known.lastSeq, 'numbers that may have been used are not used again')
  t.same(
    (await eventsOf({ registry: next }, id)).filter(({ seq }) => seq <= known.lastSeq),
    events.filter(({ type }) => type !== 'stream_delta'),
  )
  t.equal(engine.runners.length, 0, 'no engine was started')

  await next.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await next.get(id))?.status === 'idle')
  t.same(engine.last.context.restore, { engine: 'scripted', state: ['first'] }, 'the engine goes on from its snapshot')
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['second'],
    'the opening prompt is not sent again',
  )
  const after = await eventsOf({ registry: next }, id)
  t.same(
    after
      .filter(({ type }) => type === 'assistant_message')
      .map((event) => (event as never as { message: { content: { text: string }[] } }).message.content[0]?.text),
    ['heard first', 'heard second'],
  )
  const seqs = after.map(({ seq }) => seq)
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
    'numbers rise',
  )
  t.equal((await next.get(id))?.title, 'Mine')
})

t.test('nobody is shown, or told of, what a crash could take back', async (t) => {
  const { registry, journal, engine } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  const told: number[] = []
  registry.on('session_event', ({ event }) => told.push(event.seq))
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.frames.some(({ type }) => type === 'synced'))
  const seen = sink.events.length
  journal.hold()
  engine.last.say('not yet')
  await turns()
  t.equal(sink.events.length, seen)
  t.same(told, [])
  t.equal(session.info().lastSeq, sink.events.at(-1)?.seq)
  journal.release()
  await until(() => sink.events.length === seen + 1, 'the event after its commit')
  await until(() => told.length === 1)
  t.same(told, [sink.events.at(-1)?.seq])
})

t.test('a permission request is shown with the write that keeps it, before observers are told', async (t) => {
  const { registry, journal, engine } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.frames.some(({ type }) => type === 'synced'))
  const seen = sink.events.length
  let sentByThen: unknown
  registry.on('session_event', ({ event }) => {
    if (event.type === 'permission_requested') sentByThen = sink.events.slice(seen).map(({ type }) => type)
  })
  journal.hold()
  void engine.last.host.requestPermission({ toolName: 'fs_write', toolUseId: 'tool-1', input: {} })
  await turns()
  t.equal(sink.events.length, seen, 'nothing before it is durable')
  journal.release()
  await until(() => sentByThen !== undefined)
  t.same(sentByThen, ['permission_requested', 'status_changed'])
})

t.test('a command is confirmed, and its turn begun, once the message is durable', async (t) => {
  const { registry, journal, engine } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  journal.hold()
  let confirmed = false
  const sent = registry.send(id, { type: 'user_message', text: 'hello' }).then(() => {
    confirmed = true
  })
  await turns()
  t.notOk(confirmed)
  t.equal(engine.last.sent.length, 0)
  journal.release()
  await sent
  await until(() => engine.last.sent.length === 1, 'the engine was given the message')
})

t.test('an interrupt before the engine was given the message ends the turn without it', async (t) => {
  const { registry, journal, engine, eventsOf: events } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  await (await registry.open(id, UNLIMITED)).durable()
  journal.hold(1)
  const sent = registry.send(id, { type: 'user_message', text: 'hello' })
  await until(async () => (await registry.get(id))?.status === 'running')
  const interrupted = registry.send(id, { type: 'interrupt' })
  await new Promise(setImmediate)
  journal.release()
  await Promise.all([sent, interrupted])
  await until(async () => (await registry.get(id))?.status === 'idle')
  t.equal(engine.last.sent.length, 0)
  t.match(
    (await events(id)).filter(({ type }) => type === 'turn_completed'),
    [{ subtype: 'interrupted', isError: false }],
  )
})

t.test('what a crash cut off is told, and what waited goes on', async (t) => {
  const { registry, engine, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} })
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  await registry.send(id, { type: 'user_message', text: 'second', id: 'c2' })

  const { registry: next, engine: nextEngine, gateway } = await again()
  const events = await eventsOf({ registry: next }, id)
  const cut = events.findIndex(({ type }) => type === 'permission_resolved')
  t.match(events.slice(cut, cut + 4), [
    { type: 'permission_resolved', behavior: 'deny', resolvedBy: 'policy' },
    { type: 'status_changed', status: 'running' },
    { type: 'execution_failed', executionId: 'e1', reason: 'interrupted' },
    { type: 'turn_completed', subtype: 'interrupted', isError: true, errors: [/restarted/] },
  ])
  await until(() => nextEngine.runners.length === 1 && nextEngine.last.sent.length === 1, 'the message that waited')
  t.equal(nextEngine.last.sent[0]?.text, 'second')
  t.same(await gateway.executions.submit('e1', ok), { applied: false, sessionId: id }, 'a late result is known')
  await next.send(id, { type: 'user_message', text: 'second', id: 'c2' })
  nextEngine.last.complete()
  await until(async () => (await next.get(id))?.status === 'idle')
  t.equal(nextEngine.last.sent.length, 1, 'a repeated message is not run twice')
})

t.test('a session that ended stays listed with its log, and one that was deleted stays away', async (t) => {
  const { registry, again, clock, gateway } = await buildJournaled(t, { script: echo(), sessionRetentionMs: 60_000 })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  const gone = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, { type: 'close' })
  await registry.close(gone.id, 'client')
  t.equal(await registry.get(gone.id), undefined)
  await clock.advance(30_000)

  const { registry: next } = await again()
  t.equal((await next.get(id))?.status, 'closed')
  t.equal(await next.get(gone.id), undefined)
  const sink = new FakeSink()
  ;(await next.open(id, UNLIMITED)).attach(sink, {})
  await until(() => sink.closed)
  t.same(sink.closed, { code: 1000, reason: 'session_ended' })
  t.match(sink.events.at(-1), { type: 'session_closed', reason: 'client' })
  await t.rejects(next.send(id, { type: 'user_message', text: 'x' }), { code: 'SG_ERR_SESSION_ENDED' })
  await clock.advance(30_000)
  await until(async () => (await next.get(id)) === undefined, 'the end of its retention')
  const { registry: third } = await again()
  t.same(await third.list(), [])
  await gateway.close()
})

t.test('a parked session wakes in a new process, in the same log', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, again } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  await (await registry.open(id, UNLIMITED)).durable()
  const lastSeq = (await registry.get(id))!.lastSeq

  const { registry: next, gateway, engine: nextEngine } = await again()
  t.equal((await next.get(id))?.status, 'parked')
  t.same(await gateway.executions.submit('e1', ok), { applied: true, sessionId: id })
  t.same(nextEngine.last.settled, [{ executionId: 'e1', result: ok }])
  nextEngine.last.complete()
  await until(async () => (await next.get(id))?.status === 'idle')
  const events = await eventsOf({ registry: next }, id)
  t.match(events[0], { type: 'user_message', message: { content: 'go' } })
  t.ok(events.find(({ seq }) => seq === lastSeq))
  t.equal(events.filter(({ type }) => type === 'execution_result').length, 1)
  t.same(
    events.flatMap((event) => (event.type === 'status_changed' ? event.status : [])),
    ['running', 'parked', 'running', 'idle'],
  )
  await next.close(id, 'client')
  const { registry: third } = await again()
  t.same(await third.list(), [])
})

t.test('what a wake has told before a crash is not told again when the session wakes again', async (t) => {
  const script = { capabilities: { parking: 'native' as const } }
  const { registry, engine, again, gateway } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const ask = { toolName: 'write', toolUseId: 'u1', input: {} }
  void engine.last.host.requestPermission(ask)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  const requestId = (await registry.get(id))?.parked?.permissions?.[0]?.id ?? ''
  await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
  await gateway.executions.submit('e1', ok)
  await (await registry.open(id, UNLIMITED)).durable()

  const { registry: next, engine: nextEngine } = await again()
  await until(() => nextEngine.runners.length === 1 && nextEngine.last.settled.length === 1, 'the wake')
  t.same(nextEngine.last.settled, [{ executionId: 'e1', result: ok }], 'the engine is given it again')
  t.match(await nextEngine.last.host.requestPermission(ask), { behavior: 'allow' })
  nextEngine.last.complete()
  await until(async () => (await next.get(id))?.status === 'idle')
  const types = (await eventsOf({ registry: next }, id)).map(({ type }) => type)
  t.equal(types.filter((type) => type === 'permission_resolved').length, 1)
  t.equal(types.filter((type) => type === 'execution_result').length, 1)
})

t.test('while the journal takes nothing, nothing is confirmed; afterwards everything is there', async (t) => {
  const { registry, journal, engine, clock, gateway, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  journal.broken = true
  const unavailable = { code: 'SG_ERR_STORE_UNAVAILABLE', statusCode: 503 }
  engine.last.say('kept for later')
  await until(() => !gateway.ready, 'not ready')
  await t.rejects(registry.send(id, { type: 'user_message', text: 'refused' }), unavailable)
  await t.rejects(registry.create({ cwd: SOME_CWD }), unavailable)
  await t.rejects(registry.rename(id, 'refused', UNLIMITED), unavailable)
  await t.rejects(registry.close(id), unavailable)
  t.equal((await registry.list()).length, 1, 'nothing was created and nothing removed')
  journal.broken = false
  await clock.advance(60_000)
  await until(() => gateway.ready, 'ready again')
  await registry.send(id, { type: 'user_message', text: 'taken' })
  const events = await eventsOf({ registry: (await again()).registry }, id)
  t.same(
    events
      .filter(({ type }) => /message/.test(type))
      .map((event) => JSON.stringify(event).match(/kept for later|refused|taken/)?.[0]),
    ['kept for later', 'taken'],
  )
})

t.test('that a session cannot be written down is told once for each reason, however long it lasts', async (t) => {
  const told: string[] = []
  const note = (fields: { sessionId?: string }, message: string) => {
    if (fields.sessionId !== undefined) told.push(message)
  }
  const logger = { ...silentLogger, error: note as typeof silentLogger.error }
  const { registry, journal, engine, clock, gateway } = await buildJournaled(t, { logger })
  await registry.create({ cwd: SOME_CWD })
  for (const outage of [1, 2]) {
    journal.broken = true
    engine.last.say('kept for later')
    await until(() => !gateway.ready, 'not ready')
    for (let tries = 0; tries < 10; tries++) await clock.advance(30_000)
    t.same(told, Array(outage).fill('a session cannot be written down; it is tried again'))
    journal.broken = false
    await clock.advance(60_000)
    await until(() => gateway.ready, 'ready again')
  }
})

t.test(
  'that the journal does not do what is asked of it is told once for each reason until it does, and to the host each time',
  async (t) => {
    const told: string[] = []
    const logger = { ...silentLogger, error: ((_fields, message) => told.push(message)) as typeof silentLogger.error }
    const failures: string[] = []
    const onError = (error: Error) => failures.push(error.message)
    const { registry, journal } = await buildJournaled(t, { logger, parking: { onError } })
    const ids = [await registry.create({ cwd: SOME_CWD }), await registry.create({ cwd: SOME_CWD })].map(({ id }) => id)
    const unavailable = { code: 'SG_ERR_STORE_UNAVAILABLE' }
    for (const outage of [1, 2]) {
      journal.broken = true
      for (const id of [...ids, ...ids]) await t.rejects(registry.close(id), unavailable)
      t.same(
        told.filter((message) => message === 'parking: something failed'),
        Array(outage).fill('parking: something failed'),
      )
      t.same(failures, Array(outage === 1 ? 4 : 6).fill('no space left on device'))
      journal.broken = false
      await registry.close(ids.pop()!)
    }
  },
)

t.test('a log longer than the memory is read on from the journal', async (t) => {
  const { registry, engine } = await buildJournaled(t, { eventLog: { maxEvents: 10, maxBytes: 1e6 } })
  const { id } = await registry.create({ cwd: SOME_CWD })
  for (let index = 0; index < 500; index++) {
    engine.last.delta('x', `m${index}`)
    engine.last.say(`message ${index} ${'.'.repeat(300)}`, `m${index}`)
    if (index % 50 === 0) await new Promise(setImmediate)
  }
  const session = await registry.open(id, UNLIMITED)
  await session.durable()
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.frames.some(({ type }) => type === 'synced'))
  t.match(sink.frames[0], { truncated: false, oldestSeq: 1 })
  const texts = sink.events.filter(({ type }) => type === 'assistant_message')
  t.equal(texts.length, 500, 'nothing is missing')
  const seqs = sink.events.map(({ seq }) => seq)
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
  )
})

t.test(
  'what comes next is read from the journal while a client takes what was read before, and no more than that',
  async (t) => {
    const { registry, engine, journal } = await buildJournaled(t, { eventLog: { maxEvents: 10, maxBytes: 1e6 } })
    const { id } = await registry.create({ cwd: SOME_CWD })
    const words = 'x'.repeat(1_000)
    for (let n = 0; n < 300; n++) {
      engine.last.say(words)
      // only what is durable leaves the memory
      if (n % 50 === 49) await registry.durable(id)
    }
    const session = await registry.open(id, UNLIMITED)
    const { read } = journal
    let reads = 0
    journal.read = (...place) => {
      reads++
      return read(...place)
    }
    const sink = new FakeSink()
    sink.slow = true
    const attachment = session.attach(sink, {})
    await until(() => sink.frames.length === 1)
    t.equal(reads, 0, 'nothing is read for whoever does not even take the first frame')
    attachment.resume()
    await until(() => sink.events.length > 0)
    const taken = sink.events.length
    await turns(10)
    t.equal(sink.events.length, taken)
    t.equal(reads, 2)
    sink.slow = false
    attachment.resume()
    await until(() => sink.frames.at(-1)?.type === 'synced')
    t.same(
      sink.events.map(({ seq }) => seq),
      Array.from({ length: session.log.visibleSeq }, (_, index) => index + 1),
    )
    session.detach(attachment)
  },
)

t.test('a shutdown ends the turn, says so, keeps the session and starts nothing', async (t) => {
  const { registry, engine, gateway, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  const asked = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  const message = 'The gateway was shut down.'
  await gateway.close()
  t.match(await asked, { behavior: 'deny', message })
  t.ok(engine.last.closed)
  const { registry: next, engine: nextEngine } = await again()
  t.equal((await next.get(id))?.status, 'idle')
  t.match((await eventsOf({ registry: next }, id)).slice(-4), [
    { type: 'permission_resolved', behavior: 'deny', resolvedBy: 'policy', message },
    { type: 'status_changed', status: 'running' },
    { type: 'turn_completed', subtype: 'interrupted', isError: true, errors: [message] },
    { type: 'status_changed', status: 'idle' },
  ])
  t.equal(nextEngine.runners.length, 0)
})

t.test('a shutdown that has little time cuts off a turn that its engine does not end', async (t) => {
  const script: Script = { interrupt: () => {} }
  const { registry, engine, gateway, clock, again } = await buildJournaled(t, { script, shutdownTimeoutMs: 2_000 })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  const closed = gateway.close()
  await clock.advance(2_000)
  await closed
  const { registry: next } = await again()
  t.match((await eventsOf({ registry: next }, id)).slice(-2), [
    { type: 'turn_completed', subtype: 'interrupted', errors: ['The gateway was shut down.'] },
    { type: 'status_changed', status: 'idle' },
  ])
})

t.test('an engine that whoever ends the gateway has ended, too, does not fail its session', async (t) => {
  const script: Script = { interrupt: ({ host }) => host.emit({ type: 'session_error', message: 'Ended by SIGINT.' }) }
  const warned: unknown[] = []
  const logger = { ...silentLogger, warn: (fields: object) => void warned.push(fields) }
  const { registry, engine, gateway, again } = await buildJournaled(t, { script, logger })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  await gateway.close()
  t.match(warned, [{ sessionId: id, reason: 'Ended by SIGINT.' }])
  const { registry: next } = await again({ script: echo() })
  t.match((await eventsOf({ registry: next }, id)).slice(-2), [
    { type: 'turn_completed', subtype: 'interrupted', errors: ['The gateway was shut down.'] },
    { type: 'status_changed', status: 'idle' },
  ])
  t.equal((await next.get(id))?.statusDetail, undefined)
  await next.send(id, { type: 'user_message', text: 'second' })
  await until(async () => (await next.get(id))?.numTurns === 1)
})

t.test('a session whose engine never started is shown as starting by the next process too', async (t) => {
  const script = { start: () => new Promise<void>(() => {}) }
  const { registry, again } = await buildJournaled(t, { script })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await (await registry.open(id, UNLIMITED)).durable()
  t.equal((await registry.get(id))?.status, 'starting')
  const second = await again()
  await until(() => second.engine.runners.length === 1)
  t.equal((await second.registry.get(id))?.status, 'starting')
  const third = await again({ script: echo() })
  await until(async () => (await third.registry.get(id))?.status === 'idle')
  const shown = (await eventsOf(third, id)).flatMap((event) => (event.type === 'status_changed' ? event.status : []))
  t.same(shown, ['running', 'idle'], 'and it told no other status before')
})
