import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'

type World = Awaited<ReturnType<typeof buildGateway>>

const KINDS: Record<string, (t: Test, options: BuildOptions) => Promise<World>> = {
  'a journal': buildJournaled,
  'records of what is parked': buildGateway,
}

/** A session whose turn is over, and that is parked for what it asked for in it. */
async function parkedBetweenTurns({ engine, registry }: World) {
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const { host } = engine.last
  void host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
  engine.last.complete()
  await until(() => registry.here(id)?.status === 'parked', 'a parked session')
  const [request] = (await registry.get(id))!.parked!.permissions!
  return { id, requestId: request!.id }
}

for (const [kind, build] of Object.entries(KINDS)) {
  t.test(`a session that waited outside of a turn goes on with the next message: ${kind}`, async (t) => {
    const world = await build(t, { script: native })
    const { registry, engine } = world
    const { id, requestId } = await parkedBetweenTurns(world)
    await registry.resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED)
    await until(() => engine.runners.length === 2 && registry.here(id)?.status !== 'parked')
    t.equal(registry.here(id)?.status, 'idle')
    await registry.send(id, { type: 'user_message', text: 'more' })
    await until(() => engine.last.sent.length === 1, 'its turn')
    engine.last.complete()
    await until(() => registry.here(id)?.status === 'idle')
  })
}
