import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf, testStorage } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import { type Script, ScriptedEngine } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

type Step = 'is built' | 'starts'

/** A parked session that waits for three results and an answer; its next engines stay at a step until they are let go on, or fail. */
async function stuckAt(t: Test, step: Step, isJournaled: boolean) {
  const kept = isJournaled ? { storage: testStorage() } : { parking: { store: new MemorySessionStore() } }
  const decisions: unknown[] = []
  const ask = (host: ScriptedEngine['last']['host']) =>
    void host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} }).then((one) => decisions.push(one))
  let gate: Promise<void> | undefined
  let atGate = 0
  const pass = async () => {
    atGate++
    await gate
  }
  const script: Script = {
    ...native,
    async start(runner) {
      runner.init()
      if (runner.context.restore && step === 'starts') await pass()
    },
  }
  const engine = new ScriptedEngine(script)
  const createEngineRunner: typeof engine.create = async (context) => {
    if (context.restore && step === 'is built') await pass()
    return engine.create(context)
  }
  const world = await buildGateway(t, { ...kept, script, createEngineRunner })
  const { registry, clock, gateway } = world
  const { executions } = gateway
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.runners[0]?.sent.length === 1)
  for (const one of ['e1', 'e2', 'e3'])
    await engine.last.host.deferExecution({ executionId: one, toolName: 'elsewhere' })
  ask(engine.last.host)
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
  const requestId = (await registry.get(id))!.parked!.permissions![0]!.id
  let open = () => {}
  let fail = (_error: Error) => {}
  const hold = () => {
    gate = new Promise((resolve, reject) => {
      open = resolve
      fail = reject
    })
  }
  hold()
  t.teardown(() => open())
  const woken = executions.submit('e1', ok)
  await until(() => atGate === 1, 'an engine that is stuck')
  await clock.advance(5_000)
  await woken
  /** What is told to whoever waits as long as one waits for an engine. */
  const soon = async <T>(asked: Promise<T>): Promise<T | 'nothing'> => {
    let told: { as: T } | undefined
    const is = asked.then((as) => {
      told = { as }
    })
    await turns()
    await clock.advance(5_000)
    await turns()
    if (told) return told.as
    is.catch(() => {})
    return 'nothing'
  }
  const allow = (answer: 'allow' | 'deny' = 'allow') =>
    registry.resolvePermission(id, requestId, { behavior: answer }, UNLIMITED).then(() => answer)
  return {
    ...world,
    kept,
    engine,
    executions,
    id,
    ask,
    decisions,
    soon,
    allow,
    open: () => open(),
    /** The next one is stuck, too. */
    fail: (error: Error) => {
      const failed = fail
      hold()
      failed(error)
    },
    atGate: () => atGate,
  }
}

const settledOf = (runner: ScriptedEngine['last']) => runner.settled.map(({ executionId }) => executionId).sort()

for (const isJournaled of [true, false]) {
  const where = isJournaled ? 'a journal' : 'a store of what is parked'
  for (const step of ['is built', 'starts'] as const) {
    t.test(`with ${where}: what comes in while an engine ${step} is kept at once, and handed to it once`, async (t) => {
      const { registry, engine, executions, id, soon, allow, ask, decisions, open } = await stuckAt(
        t,
        step,
        isJournaled,
      )
      t.match(await soon(executions.submit('e2', ok)), { applied: true })
      t.match(await soon(executions.submit('e2', { status: 'failed', reason: 'late', error: 'late' })), {
        applied: false,
      })
      t.equal(await soon(allow()), 'allow')
      await t.rejects(allow('deny'), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
      open()
      await until(() => engine.runners[1]?.settled.length === 2)
      ask(engine.last.host)
      await until(() => decisions.length === 1)
      t.match(decisions, [{ behavior: 'allow' }])
      t.match(await executions.submit('e3', ok), { applied: true })
      t.same(settledOf(engine.last), ['e1', 'e2', 'e3'])
      engine.last.complete()
      await until(async () => (await registry.get(id))?.status === 'idle')
      const told = (await eventsOf({ registry }, id)).map((event) =>
        event.type === 'execution_result' ? event.executionId : event.type,
      )
      for (const one of ['e1', 'e2', 'e3', 'permission_resolved'])
        t.equal(told.filter((type) => type === one).length, 1, one)
    })

    t.test(`with ${where}: what came in while an engine ${step} outlives the process`, async (t) => {
      const { executions, kept, soon, allow } = await stuckAt(t, step, isJournaled)
      t.match(await soon(executions.submit('e2', ok)), { applied: true })
      t.equal(await soon(allow()), 'allow')
      // nothing of the first process comes any more: its engine is stuck for good
      const next = await buildGateway(t, { ...kept, script: native })
      await until(() => next.engine.runners[0]?.settled.length === 2, 'both results')
      t.same(settledOf(next.engine.last), ['e1', 'e2'])
      const decision = next.engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
      t.match(await decision, { behavior: 'allow' })
    })

    t.test(`with ${where}: what came in while an engine ${step} that then fails is the next one's`, async (t) => {
      const { clock, engine, executions, soon, allow, decisions, ask, open, fail, atGate } = await stuckAt(
        t,
        step,
        isJournaled,
      )
      t.match(await soon(executions.submit('e2', ok)), { applied: true })
      t.equal(await soon(allow()), 'allow')
      fail(new Error('no memory'))
      await until(async () => {
        await clock.advance(1_000)
        return atGate() === 2
      }, 'the next try')
      t.match(await soon(executions.submit('e3', ok)), { applied: true })
      open()
      await until(() => engine.last.settled.length === 3)
      ask(engine.last.host)
      await until(() => decisions.length === 1)
      t.match(decisions, [{ behavior: 'allow' }])
    })
  }

  t.test(`with ${where}: of two answers that come at once while an engine is built one counts`, async (t) => {
    const { soon, allow, engine, ask, decisions, open } = await stuckAt(t, 'is built', isJournaled)
    const told = await soon(Promise.allSettled([allow(), allow('deny')]))
    t.match(told, [{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'SG_ERR_PERMISSION_NOT_FOUND' } }])
    open()
    await until(() => engine.runners[1]?.settled.length === 1)
    ask(engine.last.host)
    await until(() => decisions.length === 1)
    t.match(decisions, [{ behavior: 'allow' }])
  })

  t.test(`with ${where}: an interrupt that comes while an engine is built ends the turn`, async (t) => {
    const { registry, id, soon, open, engine } = await stuckAt(t, 'is built', isJournaled)
    t.not(await soon(registry.send(id, { type: 'interrupt' })), 'nothing')
    open()
    await until(async () => (await registry.get(id))?.status === 'idle')
    t.same(settledOf(engine.last), ['e1', 'e2', 'e3'])
  })
}

t.test('what waits for its turn behind the start of an engine does not wait for that', async (t) => {
  const storage = testStorage()
  const { journal } = storage
  let isBuilding = false
  const engine = new ScriptedEngine(native)
  const createEngineRunner: typeof engine.create = async (context) => {
    isBuilding = context.restore !== undefined
    if (isBuilding) await new Promise(() => {})
    return engine.create(context)
  }
  const { registry, gateway, clock } = await buildGateway(t, { storage, script: native, createEngineRunner })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.runners[0]?.sent.length === 1)
  for (const one of ['e1', 'e2', 'e3'])
    await engine.last.host.deferExecution({ executionId: one, toolName: 'elsewhere' })
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
  const deposited = () => journal.deposits.flatMap((news) => (news.type === 'result' ? [news.executionId] : []))
  journal.hold(1)
  const submitted = [gateway.executions.submit('e1', ok), gateway.executions.submit('e2', ok)]
  await until(() => deposited().length === 1)
  await turns()
  // behind the wake of the first, which waits for the second
  submitted.push(gateway.executions.submit('e3', ok))
  await turns()
  t.same(deposited(), ['e1'])
  journal.release()
  await until(() => isBuilding, 'an engine that is being built')
  await until(() => deposited().length === 3, 'all of them kept')
  await clock.advance(5_000)
  t.match(await Promise.all(submitted), [{ applied: true }, { applied: true }, { applied: true }])
})
