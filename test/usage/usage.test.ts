import t, { type Test } from 'tap'
import type { SessionEventOf } from '../../schemas/events.js'
import type { UsageQuery } from '../../schemas/usage.js'
import type { Gateway } from '../../src/gateway.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { countOf } from '../../src/usage/count.js'
import { usageCsv } from '../../src/usage/csv.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const DAY = 86_400_000
const TOKENS = { inputTokens: 10, outputTokens: 3, cacheCreationTokens: 2, cacheReadTokens: 1 }
const as = (name: string, allowedProfiles?: string[]) => ({
  allowedProfiles: allowedProfiles && new Set(allowedProfiles),
  claims: { name },
})
const PROFILES = ['one', 'two'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } }))

let total = 0
const script = {
  async send(runner: ScriptedRunner, text: string) {
    if (text === 'ask') await runner.host.requestPermission({ toolName: 'write', toolUseId: text, input: {} })
    if (text === 'hang') return
    total += 0.5
    runner.complete({ usage: TOKENS, totalCostUsd: total, isError: text === 'fail', numTurns: 1 })
  },
}

async function world(t: Test, more: Parameters<typeof buildGateway>[1] = {}) {
  total = 0
  const made = await buildGateway(t, { profiles: PROFILES, script: { ...script }, ...more })
  const { gateway, registry } = made
  const run = async (prompt: string, profile = 'one', principal = as('ann')) => {
    const { id } = await registry.create({ cwd: SOME_CWD, profile, prompt }, { principal })
    if (prompt !== 'hang' && prompt !== 'ask') await idle(id)
    return id
  }
  const idle = (id: string) => until(async () => (await registry.get(id))?.status === 'idle', 'the end of the turn')
  return { ...made, run, idle, rows: (query: UsageQuery = {}) => rowsOf(gateway, query) }
}

const rowsOf = async (gateway: Gateway, query: UsageQuery = {}, principal = as('anybody')) =>
  (await gateway.usage.report(query, principal)).rows

t.test('turns, their outcome, tokens and cost are summed by day, profile, agent and person', async (t) => {
  const { run, idle, rows, registry, clock } = await world(t)
  const id = await run('go')
  await registry.send(id, { type: 'user_message', text: 'fail' })
  await until(async () => (await rows())[0]?.turns === 2)
  await run('go', 'two', as('ben'))
  const hanging = await run('hang', 'two')
  await registry.send(hanging, { type: 'interrupt' })
  await idle(hanging)
  t.same(await rows({ by: 'profile,person' }), [
    {
      ...{ profile: 'one', person: 'ann', turns: 2, turnsSucceeded: 1, turnsFailed: 1, turnsInterrupted: 0 },
      ...{ inputTokens: 20, outputTokens: 6, cacheCreationTokens: 4, cacheReadTokens: 2, costUsd: 1 },
      ...{ approvalsAsked: 0, approvalsAnswered: 0, approvalsExpired: 0 },
      ...{ approvalWaits: 0, approvalWaitMs: 0, approvalWaitMaxMs: 0, jobs: 0 },
    },
    {
      ...{ profile: 'two', person: 'ann', turns: 1, turnsSucceeded: 0, turnsFailed: 0, turnsInterrupted: 1 },
      ...{ inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
      ...{ approvalsAsked: 0, approvalsAnswered: 0, approvalsExpired: 0 },
      ...{ approvalWaits: 0, approvalWaitMs: 0, approvalWaitMaxMs: 0, jobs: 0 },
    },
    {
      ...{ profile: 'two', person: 'ben', turns: 1, turnsSucceeded: 1, turnsFailed: 0, turnsInterrupted: 0 },
      ...{ inputTokens: 10, outputTokens: 3, cacheCreationTokens: 2, cacheReadTokens: 1, costUsd: 1.5 },
      ...{ approvalsAsked: 0, approvalsAnswered: 0, approvalsExpired: 0 },
      ...{ approvalWaits: 0, approvalWaitMs: 0, approvalWaitMaxMs: 0, jobs: 0 },
    },
  ])
  t.match(await rows({ by: 'agent' }), [{ agent: 'provider', turns: 4 }])
  await clock.advance(DAY)
  await run('go')
  t.match(await rows({ by: 'day' }), [
    { day: '2026-01-01', turns: 4 },
    { day: '2026-01-02', turns: 1 },
  ])
  t.match(await rows({ from: '2026-01-02' }), [{ day: '2026-01-02', turns: 1 }])
})

t.test('a turn is of who asked for it, across a restart of the process', async (t) => {
  const storage = createMemoryStorage()
  const first = await world(t, { storage })
  const id = await first.run('go', 'one', as('ann'))
  const session = await first.registry.open(id, as('ben'))
  await session.handle({ type: 'user_message', text: 'go' }, undefined, as('ben'))
  await until(async () => (await first.rows({ by: 'person' })).length === 2)
  await first.idle(id)
  await session.handle({ type: 'user_message', text: 'hang' }, undefined, as('ben'))
  await until(async () => (await first.registry.get(id))?.status === 'running')
  await first.gateway.close()
  const second = await world(t, { storage })
  await until(async () => (await second.registry.get(id))?.status === 'idle', 'the turn that was cut off')
  const sums = await second.rows({ by: 'person' })
  t.match(sums, [
    { person: 'ann', turns: 1, turnsSucceeded: 1 },
    { person: 'ben', turns: 2, turnsSucceeded: 1, turnsInterrupted: 1 },
  ])
  // the host itself has no name: whose session it is
  await second.registry.send(id, { type: 'user_message', text: 'go' })
  await until(async () => (await second.rows({ by: 'person' }))[0]?.turns === 2)
})

t.test('so is one that ends before its engine was given the message', async (t) => {
  const { registry, engine, rows } = await world(t, { script: { ...script, start: () => new Promise(() => {}) } })
  const { id } = await registry.create({ cwd: SOME_CWD, profile: 'one' }, { principal: as('ann') })
  const session = await registry.open(id, as('ben'))
  await session.handle({ type: 'user_message', text: 'go' }, undefined, as('ben'))
  await session.handle({ type: 'interrupt' }, undefined, as('ann'))
  t.same(engine.last.sent, [])
  t.match(await rows({ by: 'person' }), [{ person: 'ben', turns: 1, turnsInterrupted: 1 }])
})

t.test('how long approvals waited is counted, and what policy decides is not', async (t) => {
  const { run, idle, rows, registry, clock } = await world(t)
  const asking = async () => {
    const id = await run('ask')
    await until(async () => (await registry.get(id))?.status === 'awaiting_approval')
    return id
  }
  const id = await asking()
  await clock.advance(1_500)
  const session = await registry.open(id, as('ben'))
  await session.answerPermission(session.pendingPermissions[0]!.id, { behavior: 'allow' })
  await idle(id)
  await asking()
  await clock.advance(300_000)
  await until(async () => (await rows())[0]?.approvalsExpired === 1)
  const closed = await asking()
  await registry.close(closed)
  t.match(await rows(), [
    {
      ...{ approvalsAsked: 3, approvalsAnswered: 1, approvalsExpired: 1 },
      ...{ approvalWaits: 2, approvalWaitMs: 301_500, approvalWaitMaxMs: 300_000 },
    },
  ])
})

t.test('runs of jobs are counted when they end, for who submitted them', async (t) => {
  const { gateway, rows, clock } = await world(t, { queue: {} })
  const request = { session: { cwd: SOME_CWD, profile: 'one', prompt: 'fail' }, attempts: 2, retryDelayMs: 5 }
  const { id } = await gateway.queue!.submit(request, { principal: as('ann') })
  await until(async () => {
    await clock.advance(10)
    return (await gateway.queue!.get(id))?.status === 'failed'
  })
  await until(async () => (await rows())[0]?.jobs === 2)
  t.match(await rows({ by: 'person' }), [{ person: 'ann', jobs: 2, turns: 2, turnsFailed: 2 }])
})

t.test('what a turn had used counts also when its session ends in the middle of it, whoever ends it', async (t) => {
  const { gateway, registry, run, rows, engine } = await world(t, { queue: {} })
  const says = () => {
    const message = { role: 'assistant' as const, content: 'x', usage: TOKENS }
    engine.last.host.emit({ type: 'assistant_message', message, uuid: 'u', parentToolUseId: null })
  }
  const hanging = async () => {
    const id = await run('hang')
    await until(() => engine.last.sent.length === 1)
    says()
    says()
    return id
  }
  const twice = { inputTokens: 20, outputTokens: 6, cacheCreationTokens: 4, cacheReadTokens: 2 }
  t.same((await registry.close(await hanging())).usage, twice)
  t.match(await rows({ by: 'person' }), [{ person: 'ann', turns: 0, ...twice }])

  const failed = await hanging()
  engine.last.host.emit({ type: 'session_error', message: 'it died' })
  await until(async () => (await rows())[0]?.inputTokens === 40)
  t.same((await registry.get(failed))?.usage, twice)

  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, profile: 'two', prompt: 'hang' } })
  await until(() => engine.runners.length === 3 && engine.last.sent.length === 1)
  says()
  t.match(await gateway.queue!.cancel(id), { status: 'canceled', usage: { ...TOKENS, tokens: 16 } })
  await until(async () => (await rows({ by: 'profile' }))[1]?.jobs === 1)
  t.match(await rows({ by: 'profile' }), [
    { profile: 'one', jobs: 0 },
    { profile: 'two', turns: 0, ...TOKENS },
  ])
  await run('go')
  t.match((await rows({ by: 'profile' }))[0], { turns: 1, inputTokens: 50 }, 'and nothing of it twice')
})

t.test('a caller sees the sums of its profiles', async (t) => {
  const { run, gateway } = await world(t)
  await run('go', 'one')
  await run('go', 'two')
  t.match(await rowsOf(gateway, { by: 'profile' }, as('x', ['two', 'three'])), [{ profile: 'two', turns: 1 }])
  t.match(await rowsOf(gateway, {}, as('x', ['two'])), [{ turns: 1 }])
  t.same(await rowsOf(gateway, {}, as('x', [])), [])
})

t.test('what is asked for is held to days that there are, and to 400 of them', async (t) => {
  const { gateway } = await world(t, { clock: new VirtualClock(Date.UTC(2026, 2, 31, 23, 59)) })
  const report = (query: UsageQuery) => gateway.usage.report(query, as('x'))
  t.match(await report({}), { from: '2026-03-02', to: '2026-03-31', by: ['day'] })
  t.match(await report({ from: '2025-02-25' }), { from: '2025-02-25', to: '2026-03-31' }, 'four hundred of them')
  t.match(await report({ by: 'person,day,person' }), { by: ['person', 'day'] })
  for (const [query, path] of [
    [{ from: '2025-02-24' }, 'from'],
    [{ from: '2026-02-30' }, 'from'],
    [{ to: '2026-13-01' }, 'to'],
    [{ from: '2026-03-02', to: '2026-03-01' }, 'from'],
  ] as const)
    await t.rejects(report(query), { code: 'SG_ERR_VALIDATION', errors: [{ path }] }, JSON.stringify(query))
})

t.test('more rows than one answer has are refused with what to do', async (t) => {
  const storage = createMemoryStorage()
  const { gateway } = await world(t, { storage })
  const key = { day: '2026-01-01', profile: 'one', agent: 'provider' }
  await storage.usage!.add(Array.from({ length: 10_001 }, (_, index) => ({ ...key, person: `p${index}`, turns: 1 })))
  await t.rejects(gateway.usage.report({ by: 'person' }, as('x')), { errors: [{ path: 'by' }] })
  t.match(await rowsOf(gateway), [{ turns: 10_001 }])
})

t.test('what an engine says of its usage may be anything, and a sum stays a number', (t) => {
  const nothing = { takeCost: () => 0, takeLastUsage: () => undefined }
  const session = { profile: 'p', agent: 'a', person: '', jobId: undefined, ...nothing, waitedSince: () => 5 }
  const usage = {
    inputTokens: -1,
    outputTokens: Number.POSITIVE_INFINITY,
    cacheReadTokens: '7',
    cacheCreationTokens: 4,
  }
  const told = {
    type: 'turn_completed',
    subtype: 'odd',
    isError: false,
    usage,
  } as unknown as SessionEventOf<'turn_completed'>
  t.match(countOf(told, 0, session), {
    ...{ day: '1970-01-01', turns: 1, turnsSucceeded: 1 },
    ...{ inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheCreationTokens: 4 },
  })
  t.match(countOf({ ...told, usage: undefined } as never, 0, session), { inputTokens: 0 })
  const resolved = { type: 'permission_resolved', requestId: 'r', behavior: 'deny', resolvedBy: 'client' } as const
  t.match(countOf(resolved, 2, session), { approvalWaitMs: 0 }, 'a clock that was set back')
  t.end()
})

t.test('a name in a table is text, whatever is in it', (t) => {
  const row = Object.fromEntries(['turns', 'jobs'].map((name) => [name, 1]))
  const report = { from: '', to: '', by: ['person', 'day'], rows: [] as object[] }
  for (const person of ['=1+1', 'a,b', 'a"b', 'a\nb', '-x', '@x', 'ann']) report.rows.push({ ...row, person, day: 'd' })
  const [header, ...lines] = usageCsv(report as never).split('\r\n')
  t.match(header, /^person,day,turns,turnsSucceeded,.*,jobs,costUsd$/)
  t.same(
    lines.map((line) => line.slice(0, line.indexOf(',d,'))),
    ["'=1+1", '"a,b"', '"a""b"', '"a\nb"', "'-x", "'@x", 'ann', ''],
  )
  t.end()
})
