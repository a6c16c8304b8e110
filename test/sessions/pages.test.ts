import { join } from 'node:path'
import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { buildParked } from '../fixtures/parked.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { type ListWorld, walksEachRowOnce } from '../fixtures/walked-pages.js'
import { firstWrite } from '../storage/sqlite-records.js'
import { sqliteAt } from '../storage/sqlite-world.js'

type World = Pick<Awaited<ReturnType<typeof buildGateway>>, 'registry' | 'clock' | 'gateway'>

/** @param answered resolves when all that the storage was asked by now has its answer */
function sessionList(
  first: World,
  again: () => Promise<World>,
  answered: () => Promise<unknown> = async () => {},
): ListWorld {
  let world = first
  return {
    async create() {
      return (await world.registry.create({ cwd: SOME_CWD })).id
    },
    async remove(id) {
      await world.registry.close(id)
    },
    async restart() {
      world = await again()
    },
    // the clock is virtual, the storage is not: by that clock it would take seconds to answer
    turnClock: (ms) => answered().then(() => world.clock.advance(ms)),
    async page(query) {
      const { items, next } = await world.registry.page(query, UNLIMITED)
      return { ids: items.map(({ id }) => id), next }
    },
    end: () => world.gateway.close(),
  }
}

const idsOf = (sessions: readonly { id: string }[]) => sessions.map(({ id }) => id)

t.test('no session is left out of the pages when the clock goes back', async (t) => {
  await t.test('over kills', (t) =>
    walksEachRowOnce(t, async () => {
      const { again, ...world } = await buildJournaled(t)
      return sessionList(world, () => again())
    }),
  )
  await t.test('in SQLite, over stops', (t) =>
    walksEachRowOnce(t, async () => {
      const path = join(t.testdir(), 'gateway.db')
      const clock = new VirtualClock()
      const build = async (t: Test) => {
        const storage = sqliteAt(t, path)
        return { ...(await buildGateway(t, { clock, storage })), storage }
      }
      let world = await build(t)
      const again = async () => {
        await world.gateway.close()
        world = await build(t)
        return world
      }
      return sessionList(world, again, () => world.storage.probe!())
    }, [4, 40]),
  )
})

t.test('sessions that come and go while the clock goes back keep their order, parked ones with them', async (t) => {
  const script: BuildOptions['script'] = { capabilities: { parking: 'native' } }
  const { registry, engine, clock, again } = await buildJournaled(t, { script })
  const made: string[] = []
  for (const ms of [5_000, -9_000, 1_000, -1_000, 0, -60_000]) {
    await clock.advance(ms)
    made.unshift((await registry.create({ cwd: SOME_CWD, prompt: 'go' })).id)
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    if (made.length % 2 === 0) continue
    await runner.defer(`e${made.length}`)
    await until(async () => (await registry.get(made[0]!))?.status === 'parked', 'a parked session')
  }
  t.same(idsOf(await registry.list()), made)
  const first = await registry.page({ limit: 2 }, UNLIMITED)
  t.same(idsOf(first.items), made.slice(0, 2))
  const { registry: next } = await again()
  t.same(idsOf(await next.list()), made)
  const second = await next.page({ limit: 2, cursor: first.next! }, UNLIMITED)
  t.same(idsOf(second.items), made.slice(2, 4))
  await next.close(made[3]!)
  const { registry: last } = await again()
  t.same(idsOf((await last.page({ cursor: second.next! }, UNLIMITED)).items), made.slice(4))
})

t.test('a cursor goes on over a restart when sessions are kept only while they are parked', async (t) => {
  const { registry, engine, clock, store, park, id: oldest } = await buildParked(t)
  await park()
  const made = [oldest]
  for (const ms of [-5_000, 2_000, -1_000]) {
    await clock.advance(ms)
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    made.unshift(id)
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    await runner.defer(`e${made.length}`)
    await until(async () => (await registry.get(id))?.status === 'parked', 'a parked session')
  }
  const { next } = await registry.page({ limit: 2 }, UNLIMITED)
  const { registry: after } = await buildGateway(t, { clock, parking: { store } })
  t.same(idsOf(await after.list()), made)
  t.same(idsOf((await after.page({ cursor: next! }, UNLIMITED)).items), made.slice(2))
})

t.test('sessions of an earlier version stand in the order in which they were written', async (t) => {
  const path = join(t.testdir(), 'gateway.db')
  const earlier = sqliteAt(t, path)
  await earlier.open()
  for (const [id, createdAt] of Object.entries({ a: 9_000, b: 3_000, c: 3_000, d: 7_000 })) {
    const write = firstWrite(id)
    const info = { ...write.state!.info, createdAt, status: 'closed' as const, lastActivityAt: Date.UTC(2026, 0, 1) }
    await earlier.journal.write({ ...write, state: { info } })
  }
  await earlier.close()
  const clock = new VirtualClock()
  const { registry, gateway } = await buildGateway(t, { clock, storage: sqliteAt(t, path) })
  const { id } = await registry.create({ cwd: SOME_CWD })
  t.same(idsOf(await registry.list()), [id, 'd', 'c', 'b', 'a'])
  const { next } = await registry.page({ limit: 2 }, UNLIMITED)
  await gateway.close()
  const { registry: after } = await buildGateway(t, { clock, storage: sqliteAt(t, path) })
  t.same(idsOf((await after.page({ cursor: next! }, UNLIMITED)).items), ['c', 'b', 'a'])
})
