import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import type { Taken } from '../../src/storage/cluster.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import type { TestPostgres } from '../fixtures/postgres.js'
import { cuttable, hasPostgres, postgres } from './postgres-world.js'

/** A way to the database that counts what is sent over the connection on which something is taken over. */
async function counting(t: Test, server: TestPostgres): Promise<{ url: string; packets(): number }> {
  const counts: { sent: number; takesOver: boolean }[] = []
  const relay = createServer((client) => {
    const upstream = connect(server.socket)
    const count = { sent: 0, takesOver: false }
    counts.push(count)
    client.on('data', (chunk) => {
      count.sent++
      count.takesOver ||= chunk.includes('take_over_')
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => client.write(chunk))
    for (const socket of [client, upstream])
      socket
        .on('error', () => {})
        .on('close', () => {
          client.destroy()
          upstream.destroy()
        })
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  t.teardown(() => relay.close())
  return {
    url: server.url({ host: `127.0.0.1:${(relay.address() as AddressInfo).port}` }),
    packets: () => counts.reduce((sum, { sent, takesOver }) => sum + (takesOver ? sent : 0), 0),
  }
}

/** Takes over from a node that had so many sessions. @returns what it took, in how many packets */
async function takeOver(t: Test, server: TestPostgres, schema: string, sessions: number) {
  const { url, packets } = await counting(t, server)
  const joined = async (name: string, url: string) => {
    const storage = createPostgresStorage({ url, schema })
    storage.cluster.announce(
      { name, url: `http://${name}.test`, protocol: 1, version: '1', slots: 1, config: '', profiles: [] },
      10_000,
    )
    await storage.open()
    t.teardown(() => storage.close())
    return storage
  }
  const a = await joined('a', server.url())
  const b = await joined('b', url)
  await until(() => b.cluster.nodes().length === 2, 'they know each other')
  await server.query(
    `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state, owner)
      SELECT 's' || i, 'p', '', 0, '{}', (SELECT n FROM ${schema}.members WHERE name = 'a') FROM generate_series(1, $1::int) AS i`,
    [sessions],
  )
  const taken = new Promise<Taken>((resolve) => b.cluster.on('taken', resolve))
  const before = packets()
  await a.close()
  const { sessionIds } = await taken
  await until(
    async () => Number((await server.query(`SELECT count(*) FROM ${schema}.takeovers`))[0]!.count) === 0,
    'that it is told',
  )
  return { taken: sessionIds.length, packets: packets() - before }
}

if (hasPostgres()) {
  t.test(
    'a parked job goes where its session is, though the connection is lost as it is left to that node',
    async (t) => {
      const server = await postgres()
      const schema = 'taken_cut'
      const way = await cuttable(t, server)
      const cut = way.cut('before', /json_array_elements_text/)
      const joined = async (name: string, slots: number, url = server.url()) => {
        const storage = createPostgresStorage({ url, schema })
        storage.cluster.announce(
          { name, url: `http://${name}.test`, protocol: 1, version: '1', slots, config: '', profiles: [] },
          10_000,
        )
        await storage.open()
        t.teardown(() => storage.close())
        return storage
      }
      const a = await joined('a', 1)
      await joined('b', 0)
      const c = await joined('c', 1, way.url)
      await until(() => c.cluster.nodes().length === 3, 'they know each other')
      const of = (name: string) => `(SELECT n FROM ${schema}.members WHERE name = '${name}')`
      await server.query(
        `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state, owner) VALUES ('s', 'p', '', 0, '{}', ${of('b')})`,
      )
      await server.query(
        `INSERT INTO ${schema}.jobs (id, status, profile, priority, created_at, begins, info, request, owner)
        VALUES ('j', 'parked', 'p', 0, 0, false, '{"id":"j","sessionId":"s"}', '{}', ${of('a')})`,
      )
      const told = new Promise<Taken>((resolve) => c.cluster.on('taken', resolve))
      await a.close()
      await cut
      t.match(await told, { from: { name: 'a' }, jobIds: ['j'] })
      // who looks for what nobody has leaves it again
      const owner = async () => (await server.query(`SELECT owner FROM ${schema}.jobs`))[0]!.owner
      await until(async () => (await owner()) === '0', 'that it is left to whom its session is')
    },
  )

  t.test(
    'a node joins though the database takes it out of a deadlock while it takes over what nobody has',
    async (t) => {
      const server = await postgres()
      const schema = 'taken_crosswise'
      const joining = async (name: string) => {
        const storage = createPostgresStorage({ url: server.url(), schema })
        storage.cluster.announce(
          { name, url: `http://${name}.test`, protocol: 1, version: '1', slots: 1, config: '', profiles: [] },
          10_000,
        )
        t.teardown(() => storage.close())
        await storage.open()
        return storage
      }
      await joining('a')
      await server.query(
        `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state) VALUES ('s', 'p', '', 0, '{}')`,
      )
      await server.query(
        `INSERT INTO ${schema}.jobs (id, status, profile, priority, created_at, begins, info, request)
        VALUES ('j', 'parked', 'p', 0, 0, false, '{"id":"j"}', '{}')`,
      )
      const other = new pg.Client({ connectionString: server.url() })
      await other.connect()
      t.teardown(() => other.end())
      await other.query("SET deadlock_timeout = '1h'")
      await other.query(`BEGIN; UPDATE ${schema}.jobs SET owner = owner WHERE id = 'j'`)
      const joined = joining('b')
      const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%take_over_%'`
      await until(async () => (await server.query(waits)).length > 0, 'that it waits for the job')
      await other.query(`UPDATE ${schema}.sessions SET owner = owner WHERE id = 's'; COMMIT`)
      const { n } = (await joined).cluster
      t.match(await server.query(`SELECT owner FROM ${schema}.jobs`), [{ owner: String(n) }])
      t.match(await server.query(`SELECT owner FROM ${schema}.sessions`), [{ owner: String(n) }])
    },
  )

  t.test('a thousand sessions are taken over with as many statements as one', async (t) => {
    const server = await postgres()
    const one = await takeOver(t, server, 'taken_one', 1)
    const thousand = await takeOver(t, server, 'taken_thousand', 1_000)
    t.equal(one.taken, 1)
    t.equal(thousand.taken, 1_000)
    t.ok(one.packets > 0)
    t.equal(thousand.packets, one.packets)
  })
}
