import t, { type Test } from 'tap'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { TestPostgres } from '../fixtures/postgres.js'
import { hasPostgres, leading, postgres, postgresWorld } from './postgres-world.js'
import { eventOf, firstWrite, readTexts } from './sqlite-records.js'

const READ_ONLY = 'POSTGRES_READ_ONLY'
const codeOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'done',
    ({ code }) => code,
  )

if (hasPostgres()) {
  const server = await postgres()

  /** Connections only read from now on, those that are there and new ones. */
  const onlyRead = async (t: Test) => {
    await server.query('ALTER SYSTEM SET default_transaction_read_only = on')
    await server.query('SELECT pg_reload_conf()')
    t.teardown(async () => {
      await server.query('ALTER SYSTEM RESET default_transaction_read_only')
      await server.query('SELECT pg_reload_conf()')
      await server.query('SET transaction_read_only = off; ALTER ROLE gateway RESET default_transaction_read_only')
    })
  }
  /** New ones write: as over a proxy that leads them to the new primary. */
  const newOnesWrite = () =>
    server.query('SET transaction_read_only = off; ALTER ROLE gateway SET default_transaction_read_only = off')

  t.test('a storage whose connection only reads any more goes on over a new one', async (t) => {
    const { storage } = await postgresWorld(t)
    await storage.journal.write(firstWrite('one'))
    await onlyRead(t)
    const write = (seq: number) => codeOf(storage.journal.write({ id: 'one', events: [eventOf(seq)] }))
    await until(async () => (await write(1)) === READ_ONLY, 'that it only reads')
    const last = (await storage.journal.read('one', 0, 100, 1e6).catch(() => [])).length
    t.equal(await codeOf(storage.journal.list()), READ_ONLY, 'what is read may be from before')
    t.equal(await write(last + 1), READ_ONLY)
    await newOnesWrite()
    await until(async () => (await write(9)) === 'done', 'that it writes again')
    t.match((await readTexts(storage.journal, 'one')).at(-1), { seq: 9 }, 'what was refused is not done later')
  })

  t.test('a node whose connections only read any more says so unasked, and serves over new ones', async (t) => {
    const { nodes } = await clusterOf(t, ['a'], { health: true })
    const [a] = nodes
    const ready = async () => {
      const answer = await fetch(new URL('/readyz', a.api))
      return [answer.status, ((await answer.json()) as { status: string }).status].join(' ')
    }
    t.equal(await ready(), '200 ready')
    await onlyRead(t)
    await until(async () => (await ready()) !== '200 ready', 'that it says so')
    t.equal(await ready(), '503 storage_unavailable')
    t.match(await a.call('POST', '/sessions', { cwd: '/' }), {
      status: 503,
      json: { code: 'SG_ERR_STORE_UNAVAILABLE' },
    })
    await newOnesWrite()
    await until(async () => (await ready()) === '200 ready', 'that it is ready again')
    t.match(await a.call('POST', '/sessions', { cwd: '/' }), { status: 201 })
  })

  t.test(
    'who is led to a standby writes nothing until that is the primary, and has its schema there, too',
    async (t) => {
      const schema = 'led'
      const way = await leading(t, server)
      const storage = createPostgresStorage({ url: way.url, schema })
      t.teardown(() => storage.close())
      await storage.open()
      await storage.journal.write(firstWrite('one'))
      await server.end('SIGINT')
      const standby = await TestPostgres.standbyOf(server)
      t.teardown(() => standby.stop())
      // before the primary is back: the standby would not have what that took then
      way.to(standby)
      await server.restart()
      await until(async () => (await codeOf(storage.probe!())) === READ_ONLY, 'that it only reads')
      await standby.query('SELECT pg_promote()')
      // each a session of its own: of a write whose answer was lost nobody knows whether it was made
      const tried: string[] = []
      const write = () => {
        tried.push(`two-${tried.length}`)
        return codeOf(storage.journal.write(firstWrite(tried.at(-1)!)))
      }
      await until(async () => (await write()) === 'done', 'that it writes')
      const ids = (await standby.query(`SELECT id FROM ${schema}.sessions`)).map(({ id }) => id)
      t.ok(ids.includes('one') && ids.includes(tried.at(-1)), `${ids}`)
      const isHeld = `SELECT FROM pg_locks JOIN pg_namespace ON nspname = $1 WHERE locktype = 'advisory'
        AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('session-gateway has ' || pg_namespace.oid, 0)`
      await until(async () => (await standby.query(isHeld, [schema])).length > 0, 'that it has its schema there')
      const second = createPostgresStorage({ url: standby.url(), schema })
      t.equal(await codeOf(second.open()), 'STORAGE_HELD')
    },
  )
}
