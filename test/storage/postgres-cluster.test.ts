import pg from 'pg'
import t from 'tap'
import type { Taken } from '../../src/storage/cluster.js'
import { clusterConformance } from '../../src/storage/cluster-conformance.js'
import { Link } from '../../src/storage/postgres/link.js'
import { statement } from '../../src/storage/postgres/plan.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { TakeOver } from '../../src/storage/postgres/takeover.js'
import { BlackHole } from '../fixtures/black-hole.js'
import { until } from '../fixtures/build.js'
import { clusterWorld } from './cluster-world.js'
import { cuttable, hasPostgres, postgres, postgresWorld } from './postgres-world.js'
import { eventOf, firstWrite, readTexts, stateOf } from './sqlite-records.js'

const LONG_MS = 600_000

if (hasPostgres()) {
  const server = await postgres()

  // first: the driver warns once in a process
  t.test('what parts of a node ask at once is asked one after the other, as the driver wants it', async (t) => {
    const warned: Error[] = []
    const onWarning = (warning: Error) => warned.push(warning)
    process.on('warning', onWarning)
    t.teardown(() => process.off('warning', onWarning))
    const link = await Link.open({ url: server.url(), place: 'here', schema: 'asked', namedStatements: true })
    t.teardown(() => link.end())
    const asked = [1, 2, 3].map((n) => link.run([statement('SELECT $1::integer AS n', n)]))
    t.same(await Promise.all(asked), [[[{ n: 1 }]], [[{ n: 2 }]], [[{ n: 3 }]]])
    await t.rejects(Promise.all([link.run([statement('SELECT nothing')]), link.run([statement('SELECT 1')])]))
    t.same(await link.run([statement('SELECT 4 AS n')]), [[{ n: 4 }]], 'what failed holds up nobody')
    await new Promise(setImmediate)
    t.same(warned, [])
  })

  for (const { name, run } of clusterConformance) t.test(name, async (t) => run(await clusterWorld(t)))

  t.test(
    'who is to take over while it is at it begins again when that is done, and not with its next beat',
    async (t) => {
      const world = await clusterWorld(t)
      const { storage } = await world.node('a', LONG_MS)
      let late = 0
      const options = { url: server.url(), place: 'here', schema: world.schema, namedStatements: true }
      const takeOver = new TakeOver(options, storage.cluster.n, LONG_MS, true, {
        ...{ taken() {}, untaken() {} },
        late: () => void late++,
      })
      t.teardown(() => takeOver.close())
      takeOver.begin([], true, false)
      await takeOver.left()
      t.equal(late, 0)
      takeOver.begin([], true, false)
      takeOver.begin([], true, false)
      await until(() => late > 0, 'told that it was late')
      t.equal(late, 1)
    },
  )

  t.test('what was left to nobody while a node had no connection it finds when it has one again', async (t) => {
    const world = await clusterWorld(t)
    const away = await world.node('away', LONG_MS)
    const { storage } = await world.node('b', LONG_MS)
    const taken = new Promise<Taken>((resolve) => away.storage.cluster.on('taken', resolve))
    await storage.journal.write(firstWrite('one'))
    away.cut()
    await storage.cluster.release(['one'])
    away.reconnect()
    t.match(await taken, { sessionIds: ['one'] })
  })

  t.test('a node that is starting serves nothing before its storage can be asked', async (t) => {
    const world = await clusterWorld(t)
    const storage = createPostgresStorage({ url: server.url(), schema: world.schema })
    storage.cluster.announce(
      { name: 'a', url: 'http://a.test', protocol: 1, version: '1', slots: 1, config: 'c', profiles: [] },
      LONG_MS,
    )
    t.teardown(() => storage.close())
    let isOpen = false
    const opened = storage.open().then(() => {
      isOpen = true
    })
    while (!isOpen) {
      if (storage.cluster.state === 'serving') await storage.signIns.version!()
      await new Promise(setImmediate)
    }
    await opened
    t.equal(storage.cluster.state, 'serving')
  })

  t.test('nobody is declared dead because the server was away for longer than a lease', async (t) => {
    const world = await clusterWorld(t)
    const nodes = [await world.node('a'), await world.node('b')]
    const told: string[] = []
    const heard = (event: 'frozen' | 'thawed') =>
      Promise.all(
        nodes.map(({ storage }) => new Promise<void>((resolve) => storage.cluster.on(event, () => resolve()))),
      )
    for (const { storage } of nodes) {
      storage.cluster.on('lost', () => told.push('lost'))
      storage.cluster.on('taken', () => told.push('taken'))
    }
    const frozen = heard('frozen')
    const thawed = heard('thawed')
    await server.end('SIGINT')
    await frozen
    // each lease is over by now, and by the database's clock too
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await server.restart()
    await thawed
    t.same(told, [])
    t.same(
      nodes.map(({ storage }) => storage.cluster.state),
      ['serving', 'serving'],
    )
  })

  t.test('a node that freezes says why its lease is not renewed', async (t) => {
    const world = await clusterWorld(t)
    const { storage } = await world.node('a')
    const frozen = new Promise<{ reason?: Error }>((resolve) => storage.cluster.on('frozen', resolve))
    const thawed = new Promise((resolve) => storage.cluster.on('thawed', resolve))
    await server.query(`ALTER TABLE ${world.schema}.leases RENAME TO elsewhere`)
    t.match((await frozen).reason, { code: 'POSTGRES_TABLES_GONE', message: /leases/ })
    await server.query(`ALTER TABLE ${world.schema}.elsewhere RENAME TO leases`)
    await thawed
  })

  t.test('a node whose new connection goes silent renews its lease by the next one', async (t) => {
    const { schema } = await clusterWorld(t)
    const proxy = await cuttable(t, server)
    const storage = createPostgresStorage({ url: server.url(), listenUrl: proxy.url, schema })
    t.teardown(() => storage.close())
    storage.cluster.announce(
      { name: 'a', url: 'http://a.test', protocol: 1, version: '1', slots: 1, config: 'c', profiles: [] },
      2_000,
    )
    await storage.open()
    for (const first of [/pg_backend_pid/, /LISTEN/]) {
      const lost = proxy.lose(first)
      void proxy.cut('before', /leases/)
      await lost
      await new Promise((resolve) => storage.cluster.on('beat', resolve))
    }
    t.equal(storage.cluster.state, 'serving')
  })

  t.test(
    'a node whose host of the database was switched off writes over a new connection as soon as it beats over one',
    async (t) => {
      const { schema } = await clusterWorld(t)
      const hole = await BlackHole.start(t, server)
      const storage = createPostgresStorage({ url: hole.url, schema })
      t.teardown(() => storage.close())
      storage.cluster.announce(
        { name: 'a', url: 'http://a.test', protocol: 1, version: '1', slots: 1, config: 'c', profiles: [] },
        2_000,
      )
      await storage.open()
      hole.abandon()
      const begun = performance.now()
      await t.rejects(async () => storage.profiles.save({ name: 'never arrived' } as never), {
        code: 'POSTGRES_UNREACHABLE',
      })
      t.ok(performance.now() - begun < 15_000, 'long before the reply to a write is given up')
      await storage.profiles.save({ name: 'kept' } as never)
      t.match(await storage.profiles.list(), [{ name: 'kept' }])
    },
  )

  t.test('one that is alone is refused while nodes have the schema, and the other way round', async (t) => {
    const world = await clusterWorld(t)
    const { storage } = await world.node('a', LONG_MS)
    await world.node('b', LONG_MS)
    const alone = createPostgresStorage({ url: server.url(), schema: world.schema })
    await t.rejects(alone.open(), { code: 'STORAGE_HELD', message: /in use by node b, .*; node a, .*Stop them first/ })
    await storage.journal.write(firstWrite('one'))

    const single = await postgresWorld(t)
    const node = createPostgresStorage({ url: server.url(), schema: single.schema })
    node.cluster.announce(
      { name: 'n', url: 'u', protocol: 1, version: '1', slots: 1, config: 'c', profiles: [] },
      LONG_MS,
    )
    await t.rejects(node.open(), { code: 'STORAGE_HELD', message: new RegExp(`process ${process.pid} on host`) })
    await single.storage.journal.write(firstWrite('one'))
  })

  t.test('events of sessions that a node removed go, some at a time, and no others', async (t) => {
    const world = await clusterWorld(t)
    const [{ storage }, other] = [await world.node('a', LONG_MS), await world.node('b', LONG_MS)]
    const events = Array.from({ length: 1_200 }, (_, index) => eventOf(index + 1))
    for (const id of ['one', 'two']) await storage.journal.write({ ...firstWrite(id), events })
    await other.storage.journal.write({ ...firstWrite('three'), events: [eventOf(1)] })
    await Promise.all(['one', 'two'].map((id) => storage.journal.remove(id)))
    const left = `SELECT count(*) AS n FROM ${world.schema}.events UNION ALL SELECT count(*) FROM ${world.schema}.removed_sessions`
    await until(async () => (await server.query(left)).map(({ n }) => Number(n)).join() === '1,0')
    t.same(await readTexts(other.storage.journal, 'three'), [eventOf(1)])
  })

  t.test('what one had alone is found by nodes, and theirs by one that is alone again', async (t) => {
    const { storage, schema } = await postgresWorld(t)
    const executions = [{ executionId: 'x1', toolName: 'tool' }]
    const { state, ...first } = firstWrite('one')
    await storage.journal.write({ ...first, state: { ...state!, executions: executions as never } })
    await storage.close()
    const node = createPostgresStorage({ url: server.url(), schema })
    t.teardown(() => node.close())
    node.cluster.announce(
      { name: 'n', url: 'u', protocol: 1, version: '1', slots: 1, config: 'c', profiles: [] },
      LONG_MS,
    )
    await node.open()
    t.match(await node.cluster.placeOfExecution('x1'), { id: 'one', owner: { n: node.cluster.n, name: 'n' } })
    t.match((await node.journal.listed!({ limit: 9, status: 'idle' })).sessions, [{ id: 'one' }])
    await node.journal.write(firstWrite('two'))
    await node.close()
    await storage.open()
    t.match(await storage.journal.awake!(), [{ id: 'one' }, { id: 'two' }])
  })

  t.test('one that was stopped in the middle of a batch does not hold up who takes over', async (t) => {
    const world = await clusterWorld(t)
    const [a, b] = [await world.node('a'), await world.node('b')]
    await a.storage.journal.write(firstWrite('one'))
    const taken = new Promise((resolve) => b.storage.cluster.on('taken', resolve))
    // as far as the server sees: a batch of it has begun, and nothing follows
    const { n } = a.storage.cluster
    const [members, mine] = [`${world.schema}.members`, `WHERE n = ${n}`]
    const stopped = server.query(
      `BEGIN; UPDATE ${members} SET backend = pg_backend_pid() ${mine}; COMMIT;
      BEGIN; UPDATE ${members} SET batch = batch ${mine}; SELECT pg_sleep(600)`,
    )
    stopped.catch(() => {})
    a.cut()
    t.match(await taken, { from: { n }, sessionIds: ['one'] })
    await t.rejects(stopped, /terminat/)
  })

  t.test('a second node of a name is told of the first', async (t) => {
    const world = await clusterWorld(t)
    await world.node('a')
    const taken = {
      message: new RegExp(
        `living node of this name already: node a, process ${process.pid} on host .*, at .*cluster\\.node`,
      ),
    }
    await t.rejects(world.node('a'), taken)
    const now = Date.now
    t.teardown(() => Object.assign(Date, { now }))
    Object.assign(Date, { now: () => now() + 3_600_000 })
    await t.rejects(world.node('a'), taken, 'nor is it gone because the clock was set')
  })

  t.test('a single process that starts writes nothing anew of the sessions that are there', async (t) => {
    const world = await postgresWorld(t)
    const { journal } = world.storage
    await journal.write(firstWrite('one'))
    await journal.write({ id: 'one', state: { ...stateOf('one'), settled: ['e1'] } })
    const { server, schema } = world
    const versions = () => server.query(`SELECT xmin::text, ctid::text FROM ${schema}.sessions`)
    const before = await versions()
    const again = await world.reopen()
    t.same(await versions(), before)
    t.equal(await again.journal.sessionOf!('e1'), 'one')
  })

  t.test('a node that cannot take over what it finds at its start has left again', async (t) => {
    const world = await clusterWorld(t)
    const a = await world.node('a', LONG_MS)
    await server.query(`ALTER FUNCTION ${world.schema}.take_over_4 RENAME TO broken`)
    await t.rejects(world.node('b', LONG_MS))
    await server.query(`ALTER FUNCTION ${world.schema}.broken RENAME TO take_over_4`)
    const b = await world.node('b', LONG_MS)
    t.same(
      b.storage.cluster.nodes().map(({ n }) => n),
      [a.storage.cluster.n, b.storage.cluster.n],
    )
  })

  t.test(
    'a node that is ahead of its database is lost for that reason, not as one that was taken over from',
    async (t) => {
      const world = await clusterWorld(t)
      const { storage } = await world.node('a', LONG_MS)
      const lost = new Promise<{ reason?: Error }>((resolve) => storage.cluster.on('lost', resolve))
      await storage.journal.write(firstWrite('one'))
      await server.query(`UPDATE ${world.schema}.members SET batch = batch - 2;
      SELECT pg_terminate_backend(backend::integer) FROM ${world.schema}.members`)
      t.match(await lost, { reason: { code: 'STORAGE_FORGOTTEN' } })
    },
  )

  t.test('what a node took over and never told of is forgotten with it', async (t) => {
    const world = await clusterWorld(t)
    const b = await world.node('b')
    const taken = new Promise((resolve) => b.storage.cluster.on('taken', resolve))
    const a = await world.node('a')
    await server.query(`INSERT INTO ${world.schema}.takeovers VALUES ($1, 0, '{}')`, [a.storage.cluster.n])
    a.cut()
    await taken
    await until(async () => (await server.query(`SELECT FROM ${world.schema}.takeovers`)).length === 0)
  })

  t.test('a key that is freed while another node asks for it is either taken or not', async (t) => {
    const world = await clusterWorld(t)
    const [a, b] = [await world.node('a', LONG_MS), await world.node('b', LONG_MS)]
    await a.storage.idempotency.begin('k', 'f')
    // b asks, and is held up before it looks whose the key is
    const GATE = 424_242
    const gate = new pg.Client({ connectionString: server.url() })
    await gate.connect()
    t.teardown(() => gate.end())
    await gate.query(`CREATE FUNCTION ${world.schema}.held() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN NULL; END';
      CREATE TRIGGER held AFTER INSERT ON ${world.schema}.idempotency_keys FOR EACH STATEMENT EXECUTE FUNCTION ${world.schema}.held();
      SELECT pg_advisory_lock(${GATE})`)
    const waits = async (of: string) =>
      (await gate.query(`SELECT FROM pg_locks WHERE NOT granted AND ${of}`)).rows.length > 0
    const asked = b.storage.idempotency.begin('k', 'f')
    await until(() => waits(`locktype = 'advisory' AND objid = ${GATE}`))
    let isFreed = false
    const freed = server.query(`DELETE FROM ${world.schema}.idempotency_keys WHERE key = 'k'`).then(() => {
      isFreed = true
    })
    await until(async () => isFreed || (await waits(`locktype IN ('transactionid', 'tuple')`)))
    await gate.query(`SELECT pg_advisory_unlock(${GATE})`)
    const found = await asked
    await freed
    const rows = await server.query(`SELECT FROM ${world.schema}.idempotency_keys WHERE key = 'k'`)
    t.equal(found.state === 'new', rows.length === 1, 'who was told that it is free has it')
  })
}
