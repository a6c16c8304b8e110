import t from 'tap'
import type { SessionEventOf } from '../../schemas/events.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

type Resolved = SessionEventOf<'permission_resolved'>

const ask = { toolName: 'Write', toolUseId: 't', input: { path: 'a' } }

t.test('whoever answers is told with the answer: over REST, a socket, by the clock or the policy', async (t) => {
  const { call, engine, api, clock, registry } = await buildServer(t, {
    authenticate: ({ headers }) => ({ name: String(headers['x-user'] ?? '') }),
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 1_000 })
  await until(() => engine.last.sent.length === 1)
  const client = await attach(t, api, json.id, '', { headers: { 'x-user': 'eve' } })
  const resolved = () => client.events.filter((event) => event.type === 'permission_resolved') as unknown as Resolved[]
  const pending = async () => {
    let id: string | undefined
    await until(async () => {
      const event = client.events.findLast(({ type }) => type === 'permission_requested') as
        | SessionEventOf<'permission_requested'>
        | undefined
      id = event?.request.id
      return id !== undefined && !resolved().some(({ requestId }) => requestId === id)
    })
    return id!
  }
  const answers: [by: unknown, answer: (requestId: string) => unknown][] = [
    [
      { principal: 'bob', channel: 'rest' },
      (id) => call('POST', `/sessions/${json.id}/permissions/${id}`, { behavior: 'allow' }, { 'x-user': 'bob' }),
    ],
    [
      { channel: 'rest' },
      (requestId) =>
        call('POST', `/sessions/${json.id}/commands`, { type: 'permission_decision', requestId, behavior: 'deny' }),
    ],
    [
      { principal: 'eve', channel: 'socket' },
      (requestId) => client.send({ type: 'permission_decision', requestId, behavior: 'deny' }),
    ],
    [undefined, (requestId) => registry.send(json.id, { type: 'permission_decision', requestId, behavior: 'allow' })],
    [{ channel: 'timeout' }, () => clock.advance(1_000)],
    [{ channel: 'policy' }, () => call('POST', `/sessions/${json.id}/commands`, { type: 'interrupt' })],
  ]
  for (const [index, [by, answer]] of answers.entries()) {
    const asked = engine.last.host.requestPermission(ask)
    await answer(await pending())
    await asked
    await until(() => resolved().length === index + 1)
    t.same(resolved()[index]?.by, by)
  }
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.same(
    events.flatMap(({ type, by }: { type: string; by?: unknown }) => (type === 'permission_resolved' ? [by] : [])),
    answers.map(([by]) => by),
    'the log has it, too',
  )
})

t.test(
  'a request that is over by the clock is denied, also where the machine slept or its clock was set',
  async (t) => {
    const { registry, engine, clock } = await buildServer(t)
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 3_600_000 })
    await until(() => engine.last.sent.length === 1)
    let decision: unknown
    void engine.last.host.requestPermission(ask).then((decided) => {
      decision = decided
    })
    await until(() => registry.here(id)?.pendingPermissions === 1)
    clock.set(3_600_000)
    await clock.advance(60_000)
    await until(() => decision !== undefined)
    t.match(decision, { behavior: 'deny', message: 'Nobody answered in time.' })
  },
)

t.test('an answer to a parked session is told with who gave it when it wakes, in another process, too', async (t) => {
  let isBroken = false
  const start = (runner: ScriptedRunner) => {
    if (isBroken) throw new Error('not now')
    runner.init()
  }
  const world = await buildJournaled(t, { script: { ...native, start } })
  const { registry, engine, again } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  void engine.last.host.requestPermission(ask)
  await until(() => registry.here(id)?.status === 'parked')
  isBroken = true
  const requestId = registry.here(id)!.parked!.permissions![0]!.id
  const answer = registry.resolvePermission(
    id,
    requestId,
    { behavior: 'allow' },
    { claims: { name: 'ada' } },
    { channel: 'link' },
  )
  await until(() => registry.here(id)?.statusDetail, 'a wake that failed')
  await registry.durable(id)
  isBroken = false
  const next = await again()
  const told = async () => {
    const events = await world.storage.journal.read(id, 0, Number.MAX_SAFE_INTEGER, 1e6)
    return events.map(({ json }) => JSON.parse(String(json))).filter(({ type }) => type === 'permission_resolved')
  }
  await until(async () => (await told()).length > 0)
  t.match(await told(), [{ requestId, behavior: 'allow', by: { principal: 'ada', channel: 'link' } }])
  t.equal(next.registry.here(id)?.status, 'running')
  await world.clock.advance(60_000)
  await answer.catch(() => {})
})
