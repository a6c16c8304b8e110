import t from 'tap'
import type { SessionInfo } from '../../schemas/sessions.js'
import { GatewayError } from '../../src/errors.js'
import { PATIENCE_MS } from '../../src/lib/patience.js'
import { UNLIMITED } from '../../src/principal.js'
import { EventLog } from '../../src/sessions/log/event-log.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

const started = async (t: Parameters<typeof buildJournaled>[0], options: Parameters<typeof buildJournaled>[1] = {}) => {
  const world = await buildJournaled(t, options)
  const { id } = await world.registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => world.engine.last.sent.length === 1)
  const session = await world.registry.open(id, UNLIMITED)
  await session.durable()
  return { ...world, id, session }
}

t.test('a live session’s result is durable before anybody is told that it was applied', async (t) => {
  const { gateway, engine, journal } = await started(t)
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  journal.hold()
  let answer: object | undefined
  const submitted = gateway.executions.submit('e1', ok).then((given) => {
    answer = given
  })
  let again: object | undefined
  const repeated = gateway.executions.submit('e1', ok).then((given) => {
    again = given
  })
  await turns()
  t.same(engine.last.settled, [], 'the engine goes on with what is kept')
  t.equal(answer, undefined, 'applied')
  t.equal(again, undefined, 'nor the repeat, which would tell the same')
  journal.release()
  await Promise.all([submitted, repeated])
  t.match(answer, { applied: true })
  t.match(again, { applied: false })
  t.equal(engine.last.settled.length, 1)
})

t.test(
  'an engine is interrupted with the last result that an interrupt brings, however slow the storage is then',
  async (t) => {
    const { registry, engine, journal, id, session } = await started(t)
    const { script, last } = engine
    for (const executionId of ['e1', 'e2']) await last.host.deferExecution({ executionId, toolName: 'elsewhere' })
    await session.durable()
    let settledThen: number | undefined
    script.settle = () => {
      if (last.settled.length === 2) journal.hold()
    }
    script.interrupt = () => {
      settledThen = last.settled.length
      last.complete({ subtype: 'interrupted' })
    }
    const interrupted = registry.send(id, { type: 'interrupt' })
    await until(() => last.settled.length === 2)
    await turns()
    t.equal(settledThen, 2)
    journal.release()
    await interrupted
    t.equal((await registry.get(id))?.status, 'idle')
  },
)

t.test('what an engine gave up before it was written down is nobody’s work', async (t) => {
  const dispatched: string[] = []
  const executions = {
    tools: [],
    onDispatch: ({ executionId }: { executionId: string }) => dispatched.push(executionId),
  }
  const world = await started(t, { executions })
  const { engine, journal, id } = world
  journal.hold()
  const word = new AbortController()
  const given = engine.last.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' }, word.signal)
  await turns()
  word.abort()
  journal.release()
  await given
  await engine.last.host.deferExecution({ executionId: 'e2', toolName: 'elsewhere' }, new AbortController().signal)
  await until(() => dispatched.length > 0)
  t.same(dispatched, ['e2'])
  const failed = async () => (await eventsOf(world, id)).filter(({ type }) => type === 'execution_failed')
  await until(async () => (await failed()).length > 0)
  t.match(await failed(), [{ executionId: 'e1', reason: 'withdrawn' }])
})

t.test('what its engine was let go over before it was written down is dispatched once it is', async (t) => {
  const dispatched: string[] = []
  const executions = {
    tools: [],
    onDispatch: ({ executionId }: { executionId: string }) => dispatched.push(executionId),
  }
  const { engine, journal, id, registry, clock } = await started(t, { executions, script: native })
  const { host } = engine.last
  journal.hold()
  const given = host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  void host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await until(() => engine.last.closed || void clock.advance(100), 'parked meanwhile')
  journal.broken = true
  journal.release()
  await t.rejects(
    given.then(() => {}),
    { code: 'SG_ERR_STORE_UNAVAILABLE' },
  )
  journal.broken = false
  await until(async () => (await registry.get(id))?.status === 'parked' || void (await clock.advance(1_000)), 'parked')
  await until(() => dispatched.length > 0, 'dispatched')
  t.match((await registry.get(id))?.parked?.executions, [{ executionId: 'e1' }])
  t.same(dispatched, ['e1'])
})

t.test('the id of a command that was refused can be used again', async (t) => {
  const { registry, engine, id } = await started(t)
  const busy = { type: 'user_message', text: 'now', id: 'c1', whenBusy: 'reject' } as const
  await t.rejects(registry.send(id, busy), { code: 'SG_ERR_SESSION_BUSY' })
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, busy)
  await until(() => engine.last.sent.length === 2)
  t.match(engine.last.sent[1], { text: 'now', commandId: 'c1' })
  engine.last.complete()
  await until(async () => (await registry.get(id))?.status === 'idle')
  await registry.send(id, busy)
  await turns()
  t.equal(engine.last.sent.length, 2, 'and once it was carried out, it was')
})

t.test('no number is shown that a crash could give to something else', async (t) => {
  const { engine, journal, id, session, again } = await started(t)
  const sink = new FakeSink()
  session.attach(sink, {})
  await until(() => sink.frames.some(({ type }) => type === 'synced'))
  const shownBefore = sink.events.length
  journal.hold()
  // live only: nothing but their numbers needs to be written, and those that are reserved run out
  for (let count = 0; count < 3_000; count++) engine.last.delta('x', 'm')
  await turns()
  const shown = sink.events.at(-1)!.seq
  t.ok(sink.events.length > shownBefore, 'deltas need not wait for the disk')
  t.ok(shown < session.log.lastSeq, 'but those beyond the reserved numbers do')
  // the process dies before any of it is on the disk
  journal.broken = true
  journal.release()
  await turns()
  journal.broken = false
  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'hello' })
  const events = await eventsOf(next, id)
  const hello = events.find((event) => event.type === 'user_message' && JSON.stringify(event).includes('hello'))
  t.ok(hello!.seq > shown, `${hello?.seq} is above ${shown}`)
})

t.test('nothing leaves the memory before it is durable', async (t) => {
  const journaled: number[] = []
  const journal = {
    oldestSeq: 1,
    onAppended: (seq: number) => void journaled.push(seq),
    read: async () => [],
  }
  const log = new EventLog(undefined, { maxEvents: 10, maxBytes: 1_000_000 }, 0, journal)
  for (let count = 0; count < 500; count++) log.append({ type: 'engine_event', payload: 'x'.repeat(200) }, 1)
  t.not(log.read(0, 500, 1_000_000), 'evicted', 'the journal has none of them yet')
  log.show(500)
  for (let count = 0; count < 500; count++) log.append({ type: 'engine_event', payload: 'x'.repeat(200) }, 1)
  t.equal(log.read(0, 500, 1_000_000), 'evicted', 'it has those, so that they can be read back')
  t.not(log.read(500, 1_000, 1_000_000), 'evicted')
})

t.test('a session whose engine cannot be built is woken later, and nothing that was delivered is lost', async (t) => {
  const engine = new ScriptedEngine(native)
  const refusals = [new Error('no such model'), new GatewayError('SG_ERR_ENGINE_START')]
  let builds = 0
  const { registry, gateway, clock } = await buildGateway(t, {
    createEngineRunner: async (context) => {
      const refusal = builds++ > 0 && refusals.shift()
      if (refusal) throw refusal
      return engine.create(context)
    },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
  for (const [at, delayMs] of [1_000, 2_000].entries()) {
    await until(
      async () => builds === at + 2 && (await registry.get(id))?.statusDetail?.includes('tried again'),
      'the try',
    )
    t.match(await registry.get(id), { status: 'parked' })
    await turns()
    await clock.advance(delayMs)
  }
  await until(() => engine.last.settled.length === 1)
  t.same(engine.last.settled, [{ executionId: 'e1', result: ok }])
  t.match(await registry.get(id), { status: 'running' })
  t.match(await gateway.executions.submit('e1', ok), { applied: false })
})

t.test('nobody sees a session parked that a crash would not leave parked', async (t) => {
  const { registry, engine, journal, id, session, again } = await started(t, { script: native })
  journal.hold(1)
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  await until(() => session.parked)
  t.match(await registry.get(id), { status: 'awaiting_approval', parked: undefined })
  t.same((await registry.page({ status: 'parked' }, UNLIMITED)).items, [], 'nor in a list of those that are')
  journal.release()
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.match(await (await again()).registry.get(id), { status: 'parked' })
})

t.test('who reads that a turn is over finds its end in the log, in the session and in the list', async (t) => {
  const { registry, engine, journal, id, session } = await started(t)
  const looks = [
    () => registry.visibleInfo(id, UNLIMITED),
    async () => (await registry.page({}, UNLIMITED)).items.find((info) => info.id === id),
  ]
  for (const look of looks) {
    const before = session.info()
    journal.hold()
    engine.last.complete()
    let seen: SessionInfo | undefined
    const looked = look().then((info) => {
      seen = info
    })
    await turns()
    t.equal(seen, undefined, 'what a crash would take back is told to nobody')
    journal.release()
    await looked
    t.match(seen, { status: 'idle', numTurns: before.numTurns + 1 })
    t.equal(session.log.visibleSeq, session.log.headSeq)
    const { length } = engine.last.sent
    await registry.send(id, { type: 'user_message', text: 'again' })
    await until(() => engine.last.sent.length > length)
  }
})

t.test('a storage that takes nothing keeps nobody from looking', async (t) => {
  const { registry, clock, engine, journal, id } = await started(t)
  journal.hold()
  engine.last.complete()
  const looked = registry.visibleInfo(id, UNLIMITED)
  await turns()
  await clock.advance(1_000)
  t.match(await looked, { status: 'idle' })
  journal.broken = true
  journal.release()
  await until(() => !registry.isWritable)
  t.match(await registry.visibleInfo(id, UNLIMITED), { status: 'idle' }, 'at once, when it is known')
  journal.broken = false
})

for (const what of ['a result', 'an answer'] as const)
  t.test(`${what} for what is not kept yet is refused when that cannot be kept`, async (t) => {
    const { registry, gateway, engine, journal, id, session } = await started(t)
    // the first thing that is asked of the journal arrives, whatever it is
    journal.hold(1)
    const { host } = engine.last
    if (what === 'a result') host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' }).catch(() => {})
    else host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} }).catch(() => {})
    const [request] = session.pendingPermissions
    const given: Promise<unknown> =
      what === 'a result'
        ? gateway.executions.submit('e1', ok)
        : registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
    const refused = t.rejects(
      given.then(() => {}),
      { code: 'SG_ERR_STORE_UNAVAILABLE' },
    )
    await turns()
    journal.broken = true
    journal.release()
    await refused
    t.same(engine.last.settled, [])
    t.equal(session.pendingPermissions.length, what === 'an answer' ? 1 : 0, 'it still waits')
    journal.broken = false
  })

t.test(
  'a session whose creation the storage takes too long for is not found by who looked at it just before',
  async (t) => {
    const { registry, journal, clock } = await buildJournaled(t)
    journal.hold()
    const refused = t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_STORE_UNAVAILABLE' })
    await until(() => registry.unended().length === 1)
    await clock.advance(PATIENCE_MS - 500)
    const page = registry.page({}, UNLIMITED)
    const notFound = t.rejects(registry.visibleInfo(registry.unended()[0]!.id, UNLIMITED), {
      code: 'SG_ERR_SESSION_NOT_FOUND',
    })
    await turns()
    await clock.advance(500)
    await refused
    await clock.advance(500)
    await notFound
    t.same((await page).items, [])
    journal.release()
  },
)
