import t, { type Test } from 'tap'
import { providerEngine } from '../../src/engines/provider/index.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { eventsOf } from '../fixtures/journaled.js'

/** An idle session in `bypassPermissions`, after a restart that disables that mode. */
async function shutOut(t: Test) {
  const storage = createMemoryStorage()
  const build = (disableBypassPermissions: boolean) =>
    buildGateway(t, {
      ...{ storage, disableBypassPermissions },
      profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
      createEngineRunner: providerEngine({ demoChunkDelayMs: 0 }),
    })
  const before = await build(false)
  const request = { cwd: SOME_CWD, prompt: 'hello', permissionMode: 'bypassPermissions' } as const
  const { id } = await before.registry.create(request)
  await until(async () => (await before.registry.get(id))?.status === 'idle', 'the end of the turn')
  await before.gateway.close()
  const after = await build(true)
  const { registry } = after
  const info = () => registry.get(id)
  const report = async () => {
    await registry.send(id, { type: 'user_message', text: 'a report please' })
    await until(async () => (await info())?.status !== 'running', 'the question')
  }
  return { ...after, id, info, report }
}

const REFUSED = { code: 'SG_ERR_BYPASS_DISABLED', message: /Set another permission mode \(set_permission_mode\)/ }

t.test('a session in a mode that was disabled goes on in another one, and in no other way', async (t) => {
  const { registry, id, info, report } = await shutOut(t)
  await t.rejects(registry.send(id, { type: 'user_message', text: 'a report please' }), REFUSED)
  await t.rejects(registry.send(id, { type: 'set_model' }), REFUSED)
  const bypass = { type: 'set_permission_mode', mode: 'bypassPermissions' } as const
  await t.rejects(registry.send(id, bypass), { code: 'SG_ERR_BYPASS_DISABLED' })
  await t.rejects(registry.send(id, { type: 'set_permission_mode', mode: 'plan' }), { code: 'SG_ERR_PERMISSION_MODE' })
  t.match(await info(), { status: 'idle', permissionMode: 'bypassPermissions' })

  await registry.send(id, { type: 'set_permission_mode', mode: 'default' })
  t.match(await info(), { status: 'idle', permissionMode: 'default' })
  await report()
  t.match(await info(), { status: 'awaiting_approval', permissionMode: 'default', pendingPermissions: 1 })
})

t.test('the log tells the mode that it goes on in, once, and it works in that one', async (t) => {
  const world = await shutOut(t)
  await world.registry.send(world.id, { type: 'set_permission_mode', mode: 'dontAsk' })
  const said = (await eventsOf(world, world.id)).flatMap((event) => ('mode' in event ? event.mode : []))
  t.same(said, ['dontAsk'])
  await world.report()
  t.match(await world.info(), { status: 'idle', permissionMode: 'dontAsk' })
})
