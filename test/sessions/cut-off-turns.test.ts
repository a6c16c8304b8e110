import t from 'tap'
import type { SessionEvent, SessionEventBody } from '../../schemas/events.js'
import { UNLIMITED } from '../../src/principal.js'
import { Turns } from '../../src/sessions/log/cut-off-turns.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

const asked = (text: string, rest: object = {}): SessionEventBody => ({
  ...{ type: 'user_message', message: { role: 'user', content: text }, uuid: text, parentToolUseId: null },
  ...rest,
})
const answer = (text: string, rest: object = {}): SessionEventBody => ({
  ...{ type: 'assistant_message', message: { role: 'assistant', content: text }, uuid: text, parentToolUseId: null },
  ...rest,
})
const end = (isError = true): SessionEventBody => ({
  ...{ type: 'turn_completed', subtype: 'interrupted', isError, durationMs: 0, numTurns: 0, totalCostUsd: 0 },
  usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
})
const status: SessionEventBody = { type: 'status_changed', status: 'running' }
const waiting = (...texts: string[]) => texts.map((text) => ({ text }))

const ROWS: [
  string,
  { before?: string[]; events: SessionEventBody[]; queued?: string[]; turns: [string?, ...string[]][] },
][] = [
  ['nothing', { events: [status], turns: [] }],
  ['one turn', { events: [asked('a'), status, answer('1'), answer('2'), end()], turns: [['a', '1', '2']] }],
  ['a turn whose end is not told', { events: [asked('a'), answer('1')], turns: [['a', '1']] }],
  ['one that had no answer', { events: [asked('a'), end()], turns: [['a']] }],
  ['one whose message is all that is told', { events: [asked('a')], turns: [['a']] }],
  ['a message that waits still', { events: [asked('a')], queued: ['a'], turns: [] }],
  ['one that was accepted in the turn before it', { before: ['b'], events: [answer('1'), end()], turns: [['b', '1']] }],
  [
    'one that was accepted in the turn before it and waits still',
    { before: ['b'], events: [asked('c')], queued: ['b', 'c'], turns: [] },
  ],
  [
    'two in a row, the second accepted in the first',
    {
      events: [asked('a'), answer('1'), asked('b'), answer('2'), end(), answer('3'), end(), asked('c')],
      queued: ['c'],
      turns: [
        ['a', '1', '2'],
        ['b', '3'],
      ],
    },
  ],
  [
    'the same again, which waits',
    { events: [asked('a'), answer('1'), end(), asked('a')], queued: ['a'], turns: [['a', '1']] },
  ],
  [
    'one that overtook another, which waits',
    { before: ['b', 'a'], events: [answer('1'), end()], queued: ['a'], turns: [['b', '1']] },
  ],
  [
    'one that was interrupted before an engine had it',
    { events: [asked('a'), end(false), asked('b'), answer('1'), end()], turns: [['b', '1']] },
  ],
  [
    'what an engine says without whether a helper says it',
    { events: [asked('a'), answer('1', { parentToolUseId: undefined }), end()], turns: [['a', '1']] },
  ],
  [
    'what helpers say, and what was said before the session',
    {
      events: [
        asked('old', { replay: true }),
        answer('old', { replay: true }),
        asked('a'),
        answer('helper', { parentToolUseId: 't' }),
        asked('result', { synthetic: true, parentToolUseId: 't' }),
        answer('1'),
        asked('result', { synthetic: true }),
      ],
      turns: [['a', '1', 'result']],
    },
  ],
]

t.test('turns are put together from what was told', async (t) => {
  for (const [what, { before = [], events, queued = [], turns }] of ROWS) {
    const told = new Turns(waiting(...before))
    for (const [seq, event] of events.entries()) told.take({ ...event, seq, ts: 0 } as SessionEvent)
    const cutOff = told.cutOff(waiting(...queued))
    t.strictSame(
      cutOff.map(({ prompt, messages }) => [prompt, ...messages.map(({ content }) => content)]),
      turns,
      what,
    )
  }
})

t.test('of a long turn the end is held', async (t) => {
  const told = new Turns([], 300)
  for (const event of [asked('a'), ...Array.from({ length: 50 }, (_, n) => answer(`answer ${n}`))])
    told.take({ ...event, seq: 1, ts: 0 } as SessionEvent)
  const [turn] = told.cutOff()
  t.equal(turn?.prompt, 'a')
  t.match(turn?.messages.at(-1), { content: 'answer 49' })
  t.ok(turn!.messages.length < 10)
  const large = new Turns([], 300)
  large.take({ ...answer('x'.repeat(1_000)), seq: 1, ts: 0 } as SessionEvent)
  t.equal(large.cutOff()[0]?.messages.length, 1, 'the last one whole')
})

const said = ({ host }: ScriptedRunner, text: string) => host.emit(answer(text) as never)
const messagesOf = (runner: ScriptedRunner) =>
  runner.context.cutOff?.map(({ prompt, messages }) => [prompt, ...messages.map(({ content }) => content)])

t.test('an engine is given the turn that a crash cut off, and those before it from its snapshot', async (t) => {
  const { registry, engine, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
  await until(() => engine.last.sent.length === 1)
  said(engine.last, 'known')
  engine.last.complete()
  await registry.send(id, { type: 'user_message', text: 'second' })
  await until(() => engine.last.sent.length === 2)
  said(engine.last, 'begun')
  await registry.durable(id)

  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'second' })
  await until(() => next.engine.runners.length === 1 && next.engine.last.sent.length === 1)
  t.match(next.engine.last.context.restore?.state, ['first'])
  t.strictSame(messagesOf(next.engine.last), [['second', 'begun']])
  said(next.engine.last, 'again')
  await next.registry.durable(id)

  const third = await again()
  await third.registry.send(id, { type: 'user_message', text: 'and now?' })
  await until(() => third.engine.runners.length === 1 && third.engine.last.sent.length === 1)
  t.strictSame(messagesOf(third.engine.last), [['second', 'again']], 'the one before is in the snapshot by then')
  third.engine.last.complete()
  await third.registry.durable(id)

  const fourth = await again()
  await fourth.registry.send(id, { type: 'user_message', text: 'more' })
  await until(() => fourth.engine.runners.length === 1)
  t.equal(fourth.engine.last.context.cutOff, undefined, 'a turn that came to its end is in the snapshot')
})

t.test('an engine is given which of its calls nobody had allowed', async (t) => {
  const { registry, engine, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  said(engine.last, 'begun')
  for (const toolUseId of ['allowed', 'refused', 'asked'])
    engine.last.host.requestPermission({ toolName: 'Bash', toolUseId, input: {} }).catch(() => {})
  const [allowed, refused] = (await registry.open(id, UNLIMITED)).pendingPermissions.map((request) => request.id)
  await registry.resolvePermission(id, allowed!, { behavior: 'allow' }, UNLIMITED)
  await registry.resolvePermission(id, refused!, { behavior: 'deny' }, UNLIMITED)
  await registry.durable(id)
  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => next.engine.runners.length === 1)
  t.strictSame(messagesOf(next.engine.last), [['go', 'begun']])
  t.strictSame(next.engine.last.context.cutOff?.[0]?.denied, ['refused', 'asked'])
})

t.test('of a first turn there is no snapshot yet', async (t) => {
  const { registry, engine, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  said(engine.last, 'begun')
  await registry.durable(id)
  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => next.engine.runners.length === 1)
  t.strictSame(messagesOf(next.engine.last), [['go', 'begun']])
})

t.test('messages that wait go on by themselves and are not given beside', async (t) => {
  const { registry, engine, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'one' })
  await until(() => engine.last.sent.length === 1)
  for (const text of ['two', 'three']) await registry.send(id, { type: 'user_message', text })
  engine.last.complete()
  await until(() => engine.last.sent.length === 2)
  said(engine.last, 'of two')
  await registry.durable(id)
  const next = await again()
  await until(() => next.engine.runners.length === 1 && next.engine.last.sent.length === 1)
  t.strictSame(messagesOf(next.engine.last), [['two', 'of two']])
  t.match(next.engine.last.sent, [{ text: 'three' }])
})

t.test('a turn that was parked goes on from its own snapshot alone', async (t) => {
  const { registry, engine, gateway, again } = await buildJournaled(t, { script: native })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  said(engine.last, 'I wait')
  await engine.last.defer('e1')
  await until(() => registry.here(id)?.status === 'parked')
  const next = await again()
  await next.gateway.executions.submit('e1', ok)
  await until(() => next.engine.runners.length === 1 && next.engine.last.settled.length === 1)
  t.equal(next.engine.last.context.cutOff, undefined)
  said(next.engine.last, 'on I go')
  await next.registry.durable(id)
  const third = await again()
  await until(() => third.engine.runners.length === 1 && third.engine.last.settled.length === 1)
  t.equal(third.engine.last.context.cutOff, undefined, 'nor when it had gone on again')
  third.engine.last.complete()
  await third.registry.send(id, { type: 'user_message', text: 'next' })
  await until(() => third.engine.last.sent.length === 1)
  const fourth = await again()
  await fourth.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => fourth.engine.runners.length === 1)
  t.strictSame(messagesOf(fourth.engine.last), [['next']], 'the turn after it is cut off as any other')
  await gateway.close()
})

t.test('a turn that the process did not wait for as it ended', async (t) => {
  const { registry, engine, gateway, clock, again } = await buildJournaled(t, {
    script: { interrupt: () => new Promise(() => {}) },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  said(engine.last, 'begun')
  let isClosed = false
  void gateway.close().then(() => (isClosed = true))
  await until(async () => {
    await clock.advance(10_000)
    return isClosed
  })
  const next = await again({ script: {} })
  await next.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => next.engine.runners.length === 1)
  t.strictSame(messagesOf(next.engine.last), [['go', 'begun']])
})

/** A session whose engine is let go after its first turn, and built again for the second one. */
async function letGoAndBack({ registry, engine, clock }: Awaited<ReturnType<typeof buildGateway>>, keeps = true) {
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  if (!keeps) engine.last.snapshot = () => undefined as never
  said(engine.last, 'done')
  engine.last.complete()
  await registry.durable(id)
  await clock.advance(5_000)
  await until(() => engine.last.closed)
  await registry.send(id, { type: 'user_message', text: 'on' })
  await until(() => engine.runners.length === 2 && engine.last.sent.length === 1)
  return engine.last.context
}

t.test(
  'an engine that keeps nothing is given nothing of the turns that have ended, with a journal or without',
  async (t) => {
    const options = { idleReleaseMs: 1_000 }
    for (const world of [await buildJournaled(t, options), await buildGateway(t, options)])
      t.equal((await letGoAndBack(world, false)).cutOff, undefined)
  },
)

t.test('an engine that was let go for being idle is given nothing', async (t) => {
  const { restore, cutOff } = await letGoAndBack(await buildJournaled(t, { idleReleaseMs: 1_000 }))
  t.ok(restore)
  t.equal(cutOff, undefined)
})

t.test('a message that overtook another one keeps its own turn, however many processes end', async (t) => {
  let goOn: (() => void) | undefined
  let isDeaf = true
  const interrupt = (runner: ScriptedRunner) =>
    isDeaf ? new Promise<void>((resolve) => (goOn = resolve)) : runner.complete({ subtype: 'interrupted' })
  const { registry, engine, again } = await buildJournaled(t, { script: { interrupt } })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'one' })
  await until(() => engine.last.sent.length === 1)
  await registry.send(id, { type: 'user_message', text: 'two' })
  void registry.send(id, { type: 'user_message', text: 'three', whenBusy: 'interrupt' }).catch(() => {})
  said(engine.last, 'of one')
  await registry.durable(id)
  const given: unknown[] = []
  let next = await again()
  for (const text of ['three', 'two']) {
    await until(() => next.engine.runners.length === 1 && next.engine.last.sent.length === 1)
    t.match(next.engine.last.sent, [{ text }])
    given.push(...(messagesOf(next.engine.last) ?? []))
    said(next.engine.last, `of ${text}`)
    await next.registry.durable(id)
    next = await again()
  }
  await next.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => next.engine.runners.length === 1)
  given.push(...(messagesOf(next.engine.last) ?? []))
  t.strictSame(given, [
    ['one', 'of one'],
    ['three', 'of three'],
    ['two', 'of two'],
  ])
  isDeaf = false
  goOn?.()
})

t.test('an engine is given the result that came for a turn which a crash cut off', async (t) => {
  const { registry, engine, journal, gateway, kill, again } = await buildJournaled(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const calls = ['told', 'came', 'failed', 'never'].map((call) => ({
    ...({ type: 'tool_use', id: call, name: 'elsewhere', input: {} } as const),
  }))
  engine.last.host.emit({ ...answer('calls'), message: { role: 'assistant', content: calls } } as never)
  for (const call of calls) await engine.last.defer(`e-${call.id}`)
  await gateway.executions.submit('e-told', ok)
  const told = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'told', content: 'done, as told' }] }
  engine.last.host.emit({ ...asked('x', { synthetic: true }), message: told } as never)
  await registry.durable(id)
  // both are kept, and the process ends before anything comes of that
  const deposit = journal.deposit.bind(journal)
  journal.deposit = async (session, news) => {
    const isThere = await deposit(session, news)
    if (journal.deposits.length === 3) kill()
    return isThere
  }
  const came = [
    gateway.executions.submit('e-came', ok),
    gateway.executions.submit('e-failed', { status: 'failed', reason: 'no_disk', error: 'full' }),
  ]
  for (const one of came) one.catch(() => {})
  await until(() => journal.deposits.length === 3)
  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'and?' })
  await until(() => next.engine.runners.length === 1)
  const results = next.engine.last.context.cutOff?.[0]?.messages.flatMap(({ role, content }) =>
    role === 'user' && typeof content !== 'string' ? content : [],
  )
  t.match(results, [
    { tool_use_id: 'told', content: 'done, as told' },
    { tool_use_id: 'came', content: 'done' },
    { tool_use_id: 'failed', content: '{"status":"failed","reason":"no_disk","error":"full"}', is_error: true },
  ])
  t.equal(results?.length, 3)
  const ends = (await eventsOf(next, id)).filter(({ type }) => /^execution_(result|failed)$/.test(type))
  t.match(
    ends.map((event) => ('executionId' in event ? event.executionId : '')).sort(),
    ['e-came', 'e-failed', 'e-never', 'e-told'],
    'each is told once',
  )
})
