import pg from 'pg'
import t from 'tap'
import { checkPostgres } from '../../src/storage/postgres/maintenance.js'
import { MIGRATIONS, SCHEMA_VERSION } from '../../src/storage/postgres/schema.js'
import { migrate, versionOf } from '../../src/storage/postgres/schema-version.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { hasPostgres, postgres, postgresWorld } from './postgres-world.js'

const NEWER = SCHEMA_VERSION + 2

/** That of the first release which several nodes shared a schema in. */
const FIRST_SHARED = 3

if (hasPostgres()) {
  t.test('the schema as it is lets the first version go on that several nodes could have', async (t) => {
    const { schema } = await postgresWorld(t)
    const client = new pg.Client({ connectionString: (await postgres()).url() })
    await client.connect()
    t.teardown(() => client.end())
    t.equal(await versionOf(client, schema, FIRST_SHARED), SCHEMA_VERSION)
  })

  t.test(
    'a schema that a newer version has taken further is used as long as that version lets older ones',
    async (t) => {
      const { schema, reopen, storage } = await postgresWorld(t)
      const server = await postgres()
      const mark = (usableFrom: number | null) =>
        server.query(
          `INSERT INTO ${schema}.schema_versions VALUES ($1, now(), $2)
         ON CONFLICT (version) DO UPDATE SET usable_from = excluded.usable_from`,
          [NEWER, usableFrom],
        )
      await storage.profiles.save({ name: 'kept' } as never)
      await mark(SCHEMA_VERSION)
      const again = await reopen()
      t.equal((await again.profiles.list()).length, 1)
      await again.close()
      await t.resolves(checkPostgres({ url: server.url(), schema }))

      for (const [usableFrom, needed] of [
        [NEWER - 1, NEWER - 1],
        [null, NEWER],
      ] as const) {
        await mark(usableFrom)
        await t.rejects(createPostgresStorage({ url: server.url(), schema }).open(), {
          code: 'STORAGE_NEWER',
          message: `needs a gateway that knows version ${needed}, this one knows versions up to ${SCHEMA_VERSION}`,
        })
      }
      t.equal((await server.query(`SELECT max(version) AS max FROM ${schema}.schema_versions`))[0]!.max, NEWER)
    },
  )

  t.test('what whoever has a schema could not go on with is done to it once nobody has it', async (t) => {
    const { schema, storage } = await postgresWorld(t)
    const client = new pg.Client({ connectionString: (await postgres()).url() })
    await client.connect()
    t.teardown(() => client.end())
    const step = (name: string) => `CREATE TABLE @${name} (n bigint)`
    const adds = { usableFrom: SCHEMA_VERSION, sql: step('added') }
    const lease = (until: string) =>
      client.query(
        `INSERT INTO ${schema}.leases SELECT n, $1 FROM ${schema}.members WHERE name = 'far' ON CONFLICT (n) DO UPDATE SET until = excluded.until`,
        [until],
      )
    await client.query(
      `INSERT INTO ${schema}.members (host, pid, started_at, version, name) VALUES ('elsewhere', 1, 0, '0', 'far')`,
    )
    await lease('-infinity')
    await t.rejects(migrate(client, schema, [...MIGRATIONS, adds, step('changed')]), {
      code: 'STORAGE_HELD',
      message: new RegExp(`in use by an older version \\(process ${process.pid} on host [^;]*\\), which`),
    })
    t.equal(await versionOf(client, schema), SCHEMA_VERSION, 'left as it was')
    await migrate(client, schema, [...MIGRATIONS, adds])
    await storage.profiles.save({ name: 'kept' } as never)
    await storage.close()
    // one of several whose connection broke goes on
    await lease('infinity')
    await t.rejects(migrate(client, schema, [...MIGRATIONS, adds, step('changed')]), {
      code: 'STORAGE_HELD',
      message: /\(node far, process 1 on host elsewhere, /,
    })
    await lease('-infinity')
    await migrate(client, schema, [...MIGRATIONS, adds, step('changed')])
    t.equal(await versionOf(client, schema, NEWER), NEWER)
  })

  t.test(
    'whoever has a schema goes on while it is to be brought up to date and somebody reads it for long',
    async (t) => {
      const { schema, storage } = await postgresWorld(t)
      const server = await postgres()
      const [client, reader] = [1, 2].map(() => new pg.Client({ connectionString: server.url() })) as [
        pg.Client,
        pg.Client,
      ]
      for (const one of [client, reader]) {
        await one.connect()
        t.teardown(() => one.end())
      }
      await reader.query(`SET application_name = 'a dump'; BEGIN; LOCK TABLE ${schema}.profiles IN ACCESS SHARE MODE`)
      const adds = { usableFrom: SCHEMA_VERSION, sql: 'ALTER TABLE @profiles ADD COLUMN added bigint' }
      const migrating = migrate(client, schema, [...MIGRATIONS, adds], 0)
      await until(
        async () =>
          (await server.query("SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'")).length > 0,
        'the new version to wait for the table',
      )
      const saving = storage.profiles.save({ name: 'kept' } as never)
      await t.rejects(migrating, { code: 'STORAGE_HELD', message: /by a dump \(process \d+ of the server\)/ })
      await saving
      t.equal(await versionOf(client, schema), SCHEMA_VERSION, 'left as it was')
      const again = migrate(client, schema, [...MIGRATIONS, adds])
      await reader.query('COMMIT')
      await again
      t.equal(await versionOf(client, schema, SCHEMA_VERSION + 1), SCHEMA_VERSION + 1)
    },
  )

  t.test('a new version waits for a table until an autovacuum has made way for it', async (t) => {
    const { schema } = await postgresWorld(t)
    const server = await postgres()
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    t.teardown(() => client.end())
    // the server has it make way when somebody has waited for so long
    const patient = `DO $$ BEGIN
      ASSERT current_setting('lock_timeout')::interval > current_setting('deadlock_timeout')::interval; END $$`
    await migrate(client, schema, [...MIGRATIONS, { usableFrom: SCHEMA_VERSION, sql: patient }])
    t.match((await client.query('SHOW lock_timeout')).rows, [{ lock_timeout: '0' }])
  })
}
