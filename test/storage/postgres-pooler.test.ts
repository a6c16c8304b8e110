import pg from 'pg'
import t from 'tap'
import { checkPostgres } from '../../src/storage/postgres/maintenance.js'
import { NamedStatements, Pipeline } from '../../src/storage/postgres/pipeline.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { pooler } from '../fixtures/pooler.js'
import { hasPostgres, postgres, postgresWorld } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

const NODE = { name: 'a', url: 'http://a.test', protocol: 1, version: '1', slots: 1, config: '', profiles: [] }

if (hasPostgres()) {
  t.test(
    'who comes by a pooler that shares connections is told so, and takes nothing from whoever is there',
    async (t) => {
      const { server, storage, schema } = await postgresWorld(t)
      const url = await pooler(t, server)
      const refusal = { code: 'POSTGRES_WAYS', message: /shares connections between transactions: name the database/ }
      for (const isNode of [false, true]) {
        const second = createPostgresStorage({ url, schema, namedStatements: false })
        if (isNode) second.cluster.announce(NODE, 10_000)
        await t.rejects(second.open(), refusal)
      }
      await t.rejects(checkPostgres({ url, schema }), { message: refusal.message })
      await t.resolves(storage.journal.write(firstWrite('one')), 'the first one goes on')
    },
  )

  t.test('with listenUrl it is of use, and a second one is refused', async (t) => {
    const server = await postgres()
    const options = { url: await pooler(t, server), listenUrl: server.url(), schema: 'pooled', namedStatements: false }
    const [first, second] = [createPostgresStorage(options), createPostgresStorage(options)]
    t.teardown(() => first.close())
    await first.open()
    await first.journal.write(firstWrite('one'))
    await t.rejects(second.open(), { code: 'STORAGE_HELD' })
    await t.resolves(checkPostgres(options))
  })

  t.test(
    'who names the pooler as listenUrl and the database as url is told so, not locked out at the next start',
    async (t) => {
      const server = await postgres()
      const options = { url: server.url(), listenUrl: await pooler(t, server), schema: 'turned' }
      const refusal = { code: 'POSTGRES_WAYS', message: /shares connections between transactions: name the database/ }
      await t.rejects(createPostgresStorage(options).open(), refusal)
      await t.rejects(checkPostgres(options), { message: refusal.message })
    },
  )

  t.test(
    'who prepares statements by one that does not keep them apart is told so before anything needs them',
    async (t) => {
      const server = await postgres()
      const options = { url: await pooler(t, server), listenUrl: server.url(), schema: 'unnamed' }
      const refusal = { code: 'POSTGRES_POOLER', message: /set storage.postgres.namedStatements to false/ }
      await t.rejects(createPostgresStorage(options).open(), refusal)
      await t.rejects(checkPostgres(options), { message: refusal.message })
    },
  )

  t.test('who comes by one that lends a connection for good to whom sets something has what it needs', async (t) => {
    const server = await postgres()
    const options = { url: await pooler(t, server, { pins: true }), schema: 'pinned', namedStatements: false }
    const [first, second] = [createPostgresStorage(options), createPostgresStorage(options)]
    await t.resolves(checkPostgres(options))
    t.teardown(() => first.close())
    await first.open()
    await t.rejects(second.open(), { code: 'STORAGE_HELD' })
    await t.resolves(first.journal.write(firstWrite('one')))
  })

  t.test('url and listenUrl are the same database, and both are asked', async (t) => {
    const server = await postgres()
    await server.query('CREATE DATABASE another')
    const another = { url: server.url(), listenUrl: server.url({ database: 'another' }) }
    await t.rejects(createPostgresStorage(another).open(), {
      code: 'POSTGRES_APART',
      message: /\(listenUrl\) is another database than .*\(url\)/,
    })
    await t.rejects(checkPostgres(another), { message: /is another database than/ })
    const missing = { url: server.url({ database: 'missing' }), listenUrl: server.url() }
    await t.rejects(checkPostgres(missing), { message: /there is no such database/ })
    const elsewhere = `${server.url()}?options=${encodeURIComponent('-c TimeZone=Asia/Tokyo')}`
    await t.resolves(checkPostgres({ url: elsewhere, listenUrl: server.url() }), 'whatever time it is there')
  })

  t.test('who comes by one that spreads one url over several databases is told so', async (t) => {
    const server = await postgres()
    await server.query('CREATE DATABASE replica')
    const url = await pooler(t, server, { pins: 'replica' })
    await t.rejects(createPostgresStorage({ url, namedStatements: false }).open(), {
      code: 'POSTGRES_APART',
      message: /leads to several databases: name what leads to the primary alone$/,
    })
  })

  t.test('the name of a statement is never that of another process for something else', async (t) => {
    const server = await postgres()
    const connect = async () => {
      const client = new pg.Client({ connectionString: server.url() })
      t.teardown(() => client.end())
      await client.connect()
      return client
    }
    const run = (client: pg.Client, sql: string, named: NamedStatements) => {
      const pipeline = new Pipeline([{ sql, values: [] }], named)
      client.query(pipeline as never)
      return pipeline.done
    }
    const [one, two] = [await connect(), await connect()]
    const [ours, theirs] = [new NamedStatements(), new NamedStatements()]
    await run(one, 'SELECT 1 AS n', ours)
    await run(two, 'SELECT 2 AS n', theirs)
    // a pooler gives each the connection of the other
    await t.rejects(run(two, 'SELECT 1 AS n', ours), { message: /does not exist/ })
  })
}
