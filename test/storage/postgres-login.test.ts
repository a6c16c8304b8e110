import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { PostgresDatabase } from '../../src/storage/postgres/database.js'
import { Membership } from '../../src/storage/postgres/membership.js'
import { directOptions } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { clusterWorld } from './cluster-world.js'
import { hasPostgres, postgres } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

const LOGIN = { user: 'login', password: 'p' }

if (hasPostgres()) {
  const server = await postgres()
  await server.query(`CREATE ROLE owner; CREATE ROLE login LOGIN PASSWORD 'p' NOINHERIT IN ROLE owner;
    ALTER ROLE login SET role = owner; GRANT CREATE ON DATABASE postgres TO owner`)

  /** A way to the server that leaves its connections there when a client is gone. */
  const leaving = async (t: Test) => {
    const clients = new Set<Socket>()
    const relay = createServer((client) => {
      const upstream = connect(server.socket)
      clients.add(client)
      client.on('data', (chunk) => upstream.write(chunk)).on('error', () => {})
      upstream.on('data', (chunk) => client.write(chunk)).on('error', () => {})
      t.teardown(() => void upstream.destroy())
    })
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
    t.teardown(() => void relay.close())
    const lose = () => {
      for (const client of clients) client.destroy()
    }
    return { url: server.url({ ...LOGIN, host: `127.0.0.1:${(relay.address() as AddressInfo).port}` }), lose }
  }

  t.test('a login that acts as the owner of the schema ends what it has lost', async (t) => {
    const schema = 'of_owner'
    const url = server.url(LOGIN)
    const membership = await Membership.join(directOptions({ url, schema }))
    t.teardown(() => membership.leave())
    const way = await leaving(t)
    const link = { url: way.url, place: 'here', schema, namedStatements: false }
    const database = await PostgresDatabase.open(link, { n: membership.n, isOneOfMany: false })
    t.teardown(() => database.close())
    const backend = async () => (await server.query(`SELECT backend FROM ${schema}.members`))[0]!.backend
    const before = await backend()
    way.lose()
    for (;;) {
      const isBack = await database.call('probe.write').then(
        () => true,
        () => false,
      )
      if (isBack) break
    }
    t.not(await backend(), before)
    const isThere = async () => (await server.query('SELECT FROM pg_stat_activity WHERE pid = $1', [before])).length > 0
    await until(async () => !(await isThere()), 'the end of the connection that was lost')
    const [owner] = await server.query(`SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = '${schema}'`)
    t.same(owner, { tableowner: 'owner' })
  })

  t.test('and what a node has open that was stopped', async (t) => {
    const world = await clusterWorld(t, { login: LOGIN })
    const [a, b] = [await world.node('a'), await world.node('b')]
    await a.storage.journal.write(firstWrite('one'))
    const taken = new Promise((resolve) => b.storage.cluster.on('taken', resolve))
    const { n } = a.storage.cluster
    const stopped = new pg.Client({ connectionString: server.url(LOGIN) })
    stopped.on('error', () => {})
    await stopped.connect()
    t.teardown(() => stopped.end())
    const members = `${world.schema}.members`
    await stopped.query(`UPDATE ${members} SET backend = pg_backend_pid() WHERE n = ${n}`)
    await stopped.query(`BEGIN; UPDATE ${members} SET batch = batch WHERE n = ${n}`)
    const ended = new Promise((resolve) => stopped.once('end', resolve))
    a.cut()
    t.match(await taken, { from: { n }, sessionIds: ['one'] })
    await ended
  })
}
