import t, { type Test } from 'tap'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { testStorage } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import type { Script, ScriptedRunner } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

/** A session that goes on with a turn that was parked, and whose engine takes an interrupt and does not end its turn. */
async function goingOn(t: Test, isJournaled: boolean, interrupt: Script['interrupt'] = () => {}) {
  const kept = isJournaled ? { storage: testStorage() } : { parking: { store: new MemorySessionStore() } }
  const world = await buildGateway(t, { ...kept, script: { ...native, interrupt } })
  const { registry, engine, gateway } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.runners[0]?.sent.length === 1)
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.runners[1]?.settled.length === 1, 'an engine that goes on')
  await registry.durable(id)
  /** The next process, whose engines end their turns. */
  const again = async () => {
    let interrupted = 0
    const script = {
      ...native,
      interrupt: (runner: ScriptedRunner) => {
        interrupted++
        runner.complete({ subtype: 'interrupted' })
      },
    }
    const next = await buildGateway(t, { ...kept, script })
    await until(() => next.engine.runners[0]?.settled.length === 1, 'the turn to go on')
    await turns()
    return { status: next.registry.here(id)?.status, interrupted }
  }
  return { ...world, id, again }
}

for (const isJournaled of [true, false]) {
  const where = isJournaled ? 'a journal' : 'a store of what is parked'
  for (const end of ['a shutdown', 'a crash'])
    t.test(`with ${where}: a turn that was parked and then interrupted does not go on after ${end}`, async (t) => {
      const { registry, gateway, id, again } = await goingOn(t, isJournaled)
      await registry.send(id, { type: 'interrupt' })
      if (end === 'a shutdown') await gateway.close()
      t.match(await again(), { status: 'idle', interrupted: 1 })
    })

  t.test(`with ${where}: it goes on where its engine has refused to be interrupted`, async (t) => {
    const refuse = () => Promise.reject(new Error('not now'))
    const { registry, gateway, id, again } = await goingOn(t, isJournaled, refuse)
    await t.rejects(registry.send(id, { type: 'interrupt' }), { code: 'SG_ERR_ENGINE_REFUSED' })
    await gateway.close()
    t.match(await again(), { status: 'running', interrupted: 0 })
  })

  t.test(`with ${where}: the turn after it is not interrupted`, async (t) => {
    const { registry, gateway, id, engine, again } = await goingOn(t, isJournaled)
    await registry.send(id, { type: 'interrupt' })
    const goesOn = engine.last
    goesOn.complete({ subtype: 'interrupted' })
    await until(() => registry.here(id)?.status === 'idle')
    await registry.send(id, { type: 'user_message', text: 'on' })
    await until(() => goesOn.sent.length === 1)
    await goesOn.defer('e2')
    await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
    await gateway.executions.submit('e2', ok)
    await until(() => engine.runners[2]?.settled.length === 1, 'an engine that goes on')
    await gateway.close()
    t.match(await again(), { status: 'running', interrupted: 0 })
  })
}
