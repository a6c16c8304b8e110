import t, { type Test } from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

/** A session whose second engine, which goes on with its turn, is in its start. */
async function inSecondStart(t: Test) {
  const dispatched: string[] = []
  let starts = 0
  let fail = (_error: Error) => {}
  const world = await buildJournaled(t, {
    executions: { tools: [], onDispatch: ({ executionId }) => void dispatched.push(executionId) },
    script: {
      ...native,
      async start(runner) {
        runner.init()
        if (++starts !== 2) return
        await new Promise<void>((_, reject) => {
          fail = reject
        })
      },
    },
  })
  const { registry, engine, gateway, clock } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  const submitted = gateway.executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  /** The start fails, and the next engine goes on. */
  const next = async (): Promise<ScriptedRunner> => {
    fail(new Error('no memory'))
    // in steps that bring the next try and, while that looks at the directory, not the limit of its start; a later try is brought as well
    await until(() => engine.last.settled.length > 0 || void clock.advance(100), 'the result in the next engine')
    await submitted
    return engine.last
  }
  return { ...world, id, dispatched, next }
}

t.test('what an engine defers whose start fails is waited for once the next engine defers it again', async (t) => {
  const { registry, engine, gateway, id, dispatched, next } = await inSecondStart(t)
  await engine.last.host.deferExecution({ executionId: 'e2', toolName: 'x' })
  await until(() => dispatched.length === 2)
  const runner = await next()
  await runner.defer('e2')
  await until(async () => (await registry.get(id))?.status === 'parked', 'parked')
  t.match((await registry.get(id))?.parked, { executions: [{ executionId: 'e2' }] })
  t.same(dispatched, ['e1', 'e2'], 'who does the work was told of it')
  t.match(await gateway.executions.submit('e2', ok), { applied: true })
})

t.test('and is dispatched then when the storage had not taken it by the time the start failed', async (t) => {
  const { registry, engine, gateway, journal, id, dispatched, next } = await inSecondStart(t)
  const { host } = engine.last
  journal.hold()
  const refused = t.rejects(host.deferExecution({ executionId: 'e2', toolName: 'x' }))
  const going = next()
  await turns()
  journal.broken = true
  journal.release()
  await refused
  journal.broken = false
  const runner = await going
  await runner.defer('e2')
  await until(async () => (await registry.get(id))?.status === 'parked', 'parked')
  await until(() => dispatched.length === 2, 'dispatched')
  t.match(await gateway.executions.submit('e2', ok), { applied: true })
})

t.test('one that was refused while its engine started is known to the next engine as refused', async (t) => {
  const { engine, journal, dispatched, next } = await inSecondStart(t)
  journal.broken = true
  await t.rejects(engine.last.host.deferExecution({ executionId: 'e2', toolName: 'x' }))
  journal.broken = false
  const runner = await next()
  await runner.host.deferExecution({ executionId: 'e2', toolName: 'x' })
  await until(() => runner.settled.length === 2, 'both settled')
  t.match(runner.settled.find(({ executionId }) => executionId === 'e2')?.result, { reason: 'interrupted' })
  t.same(dispatched, ['e1'])
})
