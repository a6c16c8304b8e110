import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { SessionEvent, SessionEventOf } from '../../schemas/events.js'
import type { CreateSessionRequest } from '../../schemas/sessions.js'
import { GatewayError } from '../../src/errors.js'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { native, ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

const ROUNDS = 1_000

/** One gateway for many rounds, each with a session of its own; `told` holds the events of the last one. */
async function buildArena(t: Test, options: Parameters<typeof buildGateway>[1] = {}) {
  const store = new MemorySessionStore()
  const world = await buildGateway(t, { parking: { store }, script: native, ...options })
  const { registry, engine, gateway } = world
  const told = new Map<string, SessionEvent[]>()
  registry.on('session_event', ({ sessionId, event }) => {
    const events = told.get(sessionId)
    if (events) events.push(event)
    else told.set(sessionId, [event])
  })
  const session = async (request: Partial<CreateSessionRequest> = {}) => {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', ...request })
    const runners = () => engine.runners.filter(({ context }) => context.sessionId === id)
    await until(() => runners()[0]?.sent.length === 1)
    return {
      id,
      runner: runners()[0]!,
      parked: () => until(async () => (await registry.get(id))?.status === 'parked', 'a parked session'),
      /** Every result that an engine of this session was handed. */
      settled: () => runners().flatMap((runner) => runner.settled),
      done: async () => {
        await registry.close(id).catch(() => {})
        engine.runners.length = 0
        told.delete(id)
      },
    }
  }
  return { ...world, executions: gateway.executions, store, told, session }
}

/** What came of a request that may find nothing any more. */
const outcome = (answer: Promise<{ applied: boolean }>) =>
  answer.then(
    ({ applied }) => (applied ? ('applied' as const) : ('not applied' as const)),
    (error) => {
      if (error instanceof GatewayError && error.statusCode === 404) return 'not found' as const
      throw error
    },
  )

/** A moment between none and some turns of the event loop. */
const moment = async () => {
  for (let turns = Math.floor(Math.random() * 4); turns > 0; turns--) await new Promise(setImmediate)
  for (let turns = Math.floor(Math.random() * 8); turns > 0; turns--) await undefined
}

t.test(`${ROUNDS} rounds of two to fifty results for one id, while it parks or is parked`, async (t) => {
  const { executions, session } = await buildArena(t)
  const wrong: unknown[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { id, runner, parked, settled, done } = await session()
    await runner.defer(`e${round}`)
    if (round % 2 === 0) await parked()
    const count = 2 + (round % 49)
    const answers = await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        await moment()
        return executions.submit(`e${round}`, { status: 'ok', output: { type: 'text', value: String(n) } })
      }),
    )
    const applied = answers.filter((answer) => answer.applied)
    if (applied.length !== 1 || settled().length !== 1 || answers.some(({ sessionId }) => sessionId !== id))
      wrong.push({ round, count, applied: applied.length, settled: settled().length })
    await done()
  }
  t.same(wrong, [])
})

t.test(`${ROUNDS} rounds of a result against DELETE`, async (t) => {
  const { registry, executions, session, store, told } = await buildArena(t)
  const wrong: unknown[] = []
  const seen = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const { id, runner, parked, settled, done } = await session()
    await runner.defer(`e${round}`)
    if (round % 3 > 0) await parked()
    const [result, removed] = await Promise.all([
      moment().then(() => outcome(executions.submit(`e${round}`, ok))),
      moment().then(() => registry.close(id, 'client')),
    ])
    await moment()
    seen.add(result)
    const closed = told.get(id)!.filter(({ type }) => type === 'session_closed').length
    const late = await outcome(executions.submit(`e${round}`, ok))
    if (
      removed.status !== 'closed' ||
      closed !== 1 ||
      late !== 'not found' ||
      settled().length > (result === 'applied' ? 1 : 0) ||
      (await registry.get(id)) !== undefined ||
      (await store.get(id)) !== undefined
    )
      wrong.push({ round, result, removed: removed.status, closed, late, settled: settled().length })
    await done()
  }
  t.same(wrong, [])
  t.ok(seen.has('applied') && seen.size > 1, `both sides won: ${[...seen].join(', ')}`)
})

t.test(`${ROUNDS} rounds of a result against the watchdog`, async (t) => {
  const { executions, session, clock } = await buildArena(t)
  const wrong: unknown[] = []
  const seen = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    const { runner, parked, settled, done } = await session()
    await runner.defer(`e${round}`, clock.now() + 1_000)
    if (round % 3 > 0) await parked()
    const [result] = await Promise.all([
      moment().then(() => outcome(executions.submit(`e${round}`, ok))),
      moment().then(() => clock.advance(1_000)),
    ])
    await until(() => settled().length > 0)
    await moment()
    seen.add(result)
    const [winner] = settled()
    const rightly = result === 'applied' ? winner?.result.status === 'ok' : winner?.result.status === 'failed'
    if (settled().length !== 1 || !rightly) wrong.push({ round, result, settled: settled() })
    await done()
  }
  t.same(wrong, [])
  t.same([...seen].sort(), ['applied', 'not applied'], 'both sides won')
})

t.test(`${ROUNDS} rounds of a result from inside the dispatch`, async (t) => {
  const answers: boolean[] = []
  const world = await buildArena(t, {
    executions: {
      tools: [],
      onDispatch: async ({ executionId }) => {
        await moment()
        answers.push((await world.executions.submit(executionId, ok)).applied)
      },
    },
  })
  const { registry, session } = world
  const wrong: unknown[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { id, runner, settled, done } = await session()
    await runner.defer(`e${round}`)
    await until(() => answers.length === round + 1 && settled().length > 0)
    await moment()
    if (!answers[round] || settled().length !== 1 || (await registry.get(id))?.status !== 'running')
      wrong.push({
        round,
        applied: answers[round],
        settled: settled().length,
        status: (await registry.get(id))?.status,
      })
    await done()
  }
  t.same(wrong, [])
})

t.test(`${ROUNDS} rounds of two answers at once, while the session parks or is parked`, async (t) => {
  const { registry, session, told } = await buildArena(t)
  const wrong: unknown[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { id, runner, parked, done } = await session({ approvalTimeoutMs: 0 })
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: {} })
    await until(async () => (await registry.get(id))?.pendingPermissions === 1)
    if (round % 2 === 0) await parked()
    const [asked] = told.get(id)!.filter((event) => event.type === 'permission_requested')
    const requestId = (asked as SessionEventOf<'permission_requested'>).request.id
    const answer = async (behavior: 'allow' | 'deny') => {
      await moment()
      return registry.resolvePermission(id, requestId, { behavior }, UNLIMITED).then(
        () => behavior,
        (error: GatewayError) => error.code,
      )
    }
    const answers = await Promise.all([answer('allow'), answer('deny')])
    await until(async () => (await registry.get(id))?.status === 'running')
    const resolved = told.get(id)!.filter((event) => event.type === 'permission_resolved')
    const winner = (resolved[0] as SessionEventOf<'permission_resolved'>).behavior
    if (resolved.length !== 1 || !answers.includes(winner) || !answers.includes('SG_ERR_PERMISSION_NOT_FOUND'))
      wrong.push({ round, answers, resolved: resolved.length })
    await done()
  }
  t.same(wrong, [])
})

t.test('whatever the store’s timing: one result is applied, the engine sees it, nothing is left behind', async (t) => {
  const settle: Script['settle'] = (runner) => setImmediate(() => runner.complete())
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 4 }), fc.boolean(), async (s, results, removes) => {
      const store = new ScheduledStore(s)
      const world = await buildGateway(t, { parking: { store }, script: { ...native, settle } })
      const { registry, engine, gateway } = world
      const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
      await until(() => engine.last.sent.length === 1)
      await engine.last.defer('e1')
      const acts = Array.from({ length: results }, (_, n) =>
        s.schedule(Promise.resolve(), `result ${n}`).then(() => outcome(gateway.executions.submit('e1', ok))),
      )
      const removal = removes
        ? s.schedule(Promise.resolve(), 'DELETE').then(() => registry.close(id, 'client'))
        : undefined
      const all = Promise.all([...acts, removal])
      let finished = false
      void all.finally(() => {
        finished = true
      })
      await until(async () => {
        if (s.count() > 0) await s.waitOne()
        return finished
      })
      const outcomes = (await Promise.all(acts)) as string[]
      const applied = outcomes.filter((one) => one === 'applied').length
      const settled = engine.runners.flatMap((runner) => runner.settled)
      if (removes) {
        if (applied > 1 || settled.length > applied) throw new Error(`${outcomes} and ${settled.length} seen`)
        if (await registry.get(id)) throw new Error('it is still there')
      } else {
        if (applied !== 1 || settled.length !== 1) throw new Error(`${outcomes} and ${settled.length} seen`)
        await until(async () => {
          if (s.count() > 0) await s.waitOne()
          return (await registry.get(id))?.status === 'idle' && !store.has(id)
        }, 'an idle session without a record')
      }
      if (store.has(id)) throw new Error('its record was left behind')
      store.free = true
      await gateway.close()
    }),
    { numRuns: 200 },
  )
})

/** A store whose every operation takes effect when the scheduler says so. */
class ScheduledStore extends MemorySessionStore {
  free = false
  readonly #ids = new Set<string>()
  readonly #scheduler: fc.Scheduler

  constructor(scheduler: fc.Scheduler) {
    super()
    this.#scheduler = scheduler
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  #turn(what: string): Promise<void> {
    return this.free ? Promise.resolve() : this.#scheduler.schedule(Promise.resolve(), what)
  }

  override async save(...args: Parameters<MemorySessionStore['save']>) {
    await this.#turn('save')
    await super.save(...args)
    this.#ids.add(args[0].id)
  }

  override async get(id: string) {
    await this.#turn('get')
    return super.get(id)
  }

  override async delete(id: string) {
    await this.#turn('delete')
    await super.delete(id)
    this.#ids.delete(id)
  }
}
