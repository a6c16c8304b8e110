import t from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import { native } from '../fixtures/parked.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { hasPostgres } from '../storage/postgres-world.js'

if (hasPostgres()) {
  t.test('a question of a session whose home is gone stays in the inbox, and goes home with it', async (t) => {
    const clock = new VirtualClock()
    const options = {
      script: native,
      parking: { parkDelayMs: 0 },
      profiles: [{ name: 'agent', engine: 'cli' as const }],
    }
    const { nodes, join } = await clusterOf(t, ['home', 'other'], { ...options, clock, leaseMs: 4_000 })
    const [home, other] = nodes
    const { id } = (await home.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'ask', approvalTimeoutMs: 0 })).json
    void home.engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
    await clock.advance(0)
    await until(async () => (await other.storage.journal!.get(id))?.state.info.status === 'parked', 'parked')
    const asked = async (node: TestNode) => (await node.call('GET', '/inbox')).json.length
    home.cutOff()
    await until(async () => (await asked(other)) === 1, 'it was taken over')
    for (let times = 0; times < 4; times++) await clock.advance(5_000)
    t.equal(await asked(other), 1, 'also when nobody has looked at it for long')
    const again = await join('home')
    // whatever is done with it as its node is back: it is left a little later then
    await until(async () => {
      await clock.advance(500)
      await again.storage.cluster!.placeOfSession(id)
      return again.worker.registry.has(id)
    }, 'it is at home')
    await until(() => !other.worker.registry.has(id), 'and there alone')
    t.equal(await asked(other), 1)
    t.equal(await asked(again), 1)
  })

  t.test('so does one that nobody but its node can go on with: its deadline does not wake it elsewhere', async (t) => {
    const clock = new VirtualClock()
    const profiles = ['scripted', 'new'].map((name) => ({ name, engine: 'provider' as const, provider: { id: name } }))
    const options = { clock, leaseMs: 4_000, script: native, parking: { parkDelayMs: 0 } }
    const { nodes, join } = await clusterOf(t, ['lacks'], options)
    const [lacks] = nodes
    const has = await join('has', { profiles })
    const request = { cwd: SOME_CWD, profile: 'new', prompt: 'wait' }
    const { id } = (await has.call('POST', '/sessions', request)).json
    await has.engine.last.defer('e1', clock.now() + 20_000)
    await clock.advance(0)
    await until(async () => (await lacks.storage.journal!.get(id))?.sleeps, 'asleep')
    await has.stop()
    await until(() => lacks.worker.registry.has(id), 'its deadline is seen to')
    const again = await join('has', { profiles })
    await until(() => !lacks.worker.registry.has(id), 'it is left')
    await until(async () => {
      await clock.advance(500)
      await again.storage.cluster!.placeOfSession(id)
      return again.engine.runners.some(({ settled }) => settled.length > 0)
    }, 'the deadline')
    t.match(again.engine.last.settled, [{ executionId: 'e1', result: { status: 'failed', reason: 'timeout' } }])
    t.equal(lacks.engine.runners.length, 0)
  })
}
