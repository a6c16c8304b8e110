import t from 'tap'
import { newJob } from '../../src/jobs/job.js'
import type { Taken } from '../../src/storage/cluster.js'
import type { TestNode } from '../../src/storage/cluster-conformance.js'
import { until } from '../fixtures/build.js'
import { clusterWorld } from './cluster-world.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

const LONG_MS = 600_000

if (hasPostgres()) {
  const server = await postgres()

  /** Begun by a node. */
  const running = async ({ storage: { queue } }: TestNode, id: string) => {
    const request = { session: { cwd: '/srv', prompt: 'do it' } }
    await queue.add({ info: newJob(request, { id, now: 0, profile: 'p', generation: 'g', cwd: '/srv' }), request })
    await queue.claim!(1)
  }
  const ownedBy = async ({ storage: { queue } }: TestNode) => {
    const ids: string[] = []
    for await (const page of queue.owned!()) ids.push(...page.map(({ info }) => info.id))
    return ids
  }
  const toldOf = (node: TestNode) =>
    new Promise<Taken>((resolve) => void node.storage.cluster.on('taken', (taken) => resolve(taken)))

  t.test('jobs that one without a queue left to nobody are of a node that was there already', async (t) => {
    const world = await clusterWorld(t)
    const [a, b] = [await world.node('a', LONG_MS), await world.node('b')]
    const taken: Taken[] = []
    b.storage.cluster.on('taken', (one) => taken.push(one))
    await running(a, 'one')
    await until(() => b.storage.cluster.nodes().length === 2, 'they know each other')
    // as it does that takes over and knows of nobody yet who runs jobs
    await server.query(
      `BEGIN; UPDATE ${world.schema}.jobs SET owner = 0; DELETE FROM ${world.schema}.members WHERE name = 'a'; COMMIT`,
    )
    await until(() => taken.length > 0, 'that they are found')
    t.match(taken, [{ from: undefined, jobIds: ['one'] }])
  })

  t.test(
    'what waits to be told of jobs is left by one without a queue, too, until there is one that has',
    async (t) => {
      const world = await clusterWorld(t)
      const a = await world.node('a')
      await running(a, 'one')
      const told = (lane: string) => a.storage.outbox.add({ id: lane, lane, delivery: { type: 'told' } })
      await told('one')
      await told('a session')
      const b = await world.node('b', undefined, [], 0)
      const taken = toldOf(b)
      a.cut()
      await taken
      const lanesOf = async (node: typeof a) => (await node.storage.outbox.list()).map(({ lane }) => lane)
      t.same(await lanesOf(b), ['a session'])
      const c = await world.node('c')
      t.same(await lanesOf(c), ['one'])
    },
  )

  t.test('and are told once, though the connection is lost over it, and again when there are others', async (t) => {
    const world = await clusterWorld(t)
    const [a, b] = [await world.node('a', LONG_MS), await world.node('b')]
    const taken: Taken[] = []
    b.storage.cluster.on('taken', (one) => {
      taken.push(one)
      if (taken.length > 1) return
      b.cut()
      setImmediate(() => b.reconnect())
    })
    const leave = (name: string) =>
      server.query(
        `BEGIN; UPDATE ${world.schema}.jobs SET owner = 0; DELETE FROM ${world.schema}.members WHERE name = '${name}'; COMMIT`,
      )
    const told = () =>
      until(async () => (await server.query(`SELECT FROM ${world.schema}.takeovers`)).length === 0, 'that it is told')
    await running(a, 'one')
    await until(() => b.storage.cluster.nodes().length === 2, 'they know each other')
    await leave('a')
    await until(() => taken.length > 0, 'that it is found')
    await told()
    const c = await world.node('c', LONG_MS)
    await until(() => b.storage.cluster.nodes().length === 2, 'they know each other')
    t.same(
      taken.filter(({ jobIds }) => jobIds.length > 0).map(({ jobIds }) => jobIds),
      [['one']],
    )
    await running(c, 'two')
    await leave('c')
    await until(() => taken.some(({ jobIds }) => jobIds.includes('two')), 'what nobody has again')
    await told()
  })

  t.test('a dead node is left to one that runs jobs by those that run none', async (t) => {
    const world = await clusterWorld(t)
    const a = await world.node('a')
    const idle = [
      await world.node('x', 2_000, [], 0),
      await world.node('y', 2_000, [], 0),
      await world.node('z', 2_000, [], 0),
    ]
    const b = await world.node('b')
    await until(() => idle.every(({ storage }) => storage.cluster.nodes().length === 5))
    await running(a, 'job')
    await a.storage.journal.write(firstWrite('one'))
    const told = Promise.race([b, ...idle].map(toldOf))
    a.cut()
    t.match(await told, { sessionIds: ['one'], jobIds: ['job'] })
    t.same(await ownedBy(b), ['job'])
  })

  t.test('what is left to the nodes that have its profile is for those of them that run jobs', async (t) => {
    const world = await clusterWorld(t)
    const has = ['one', 'p']
    const [a, lacks] = [await world.node('a', LONG_MS, has), await world.node('lacks', LONG_MS)]
    const [x, b] = [await world.node('x', 2_000, has, 0), await world.node('b', 2_000, has)]
    await until(() => [lacks, x, b].every(({ storage }) => storage.cluster.nodes().length === 4))
    await running(a, 'job')
    await a.storage.journal.write(firstWrite('one'))
    const told = toldOf(lacks)
    await a.storage.close()
    t.match(await told, { sessionIds: [], jobIds: [] })
    let beats = 0
    x.storage.cluster.on('beat', () => beats++)
    void toldOf(x)
    await until(() => beats > 2, 'it has looked, and so has what it would have taken')
    t.match(await toldOf(b), { sessionIds: ['one'], jobIds: ['job'] })
    t.match(await b.storage.cluster.placeOfSession('one'), { owner: { name: 'b' } })
  })

  t.test('where no node is left that runs jobs, the next one finds those of a dead node', async (t) => {
    const world = await clusterWorld(t)
    const a = await world.node('a')
    const x = await world.node('x', 2_000, [], 0)
    await running(a, 'job')
    await a.storage.journal.write(firstWrite('one'))
    const told = toldOf(x)
    a.cut()
    t.match(await told, { sessionIds: ['one'], jobIds: [] })
    t.same(await ownedBy(x), [])
    t.same(await ownedBy(await world.node('y', 2_000, [], 0)), [])
    const b = await world.node('b')
    t.same(await ownedBy(b), ['job'])
    t.match(await b.storage.cluster.placeOfSession('one'), { owner: { name: 'x' } })
  })
}
