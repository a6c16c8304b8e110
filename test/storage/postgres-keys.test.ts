import t from 'tap'
import { KEYS } from '../../src/storage/postgres/keys.js'
import { checkPostgres, doctorPostgres } from '../../src/storage/postgres/maintenance.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'
import { firstWrite } from './sqlite-records.js'

if (hasPostgres()) {
  t.test('a schema whose keys a restore has left out is refused, and told how to get them', async (t) => {
    const { server, schema, storage, reopen } = await postgresWorld(t)
    await storage.journal.write(firstWrite('one'))
    await storage.close()
    // as PostgreSQL says them, so that none is forgotten
    const constraints = await server.query(
      `SELECT relname AS table, conname AS name, substring(pg_get_constraintdef(c.oid) FROM '\\((.*)\\)') AS columns
       FROM pg_constraint AS c JOIN pg_class ON pg_class.oid = conrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE nspname = $1 AND contype IN ('p', 'u') ORDER BY relname, contype`,
      [schema],
    )
    t.same(
      constraints.map(({ table, columns }) => `${table} ${columns}`),
      Object.entries(KEYS)
        .flatMap(([table, keys]) => keys.map((columns) => `${table} ${columns}`))
        .sort((a, b) => (a.split(' ')[0]! < b.split(' ')[0]! ? -1 : 1)),
    )
    for (const { table, name } of constraints)
      await server.query(`ALTER TABLE ${schema}.${table} DROP CONSTRAINT ${name} CASCADE`)

    const options = { url: server.url(), schema }
    const said = new RegExp(
      `he schema ${schema} lacks keys of its tables.*restore the backup again.*ALTER TABLE "${schema}".events ADD PRIMARY KEY \\(session, seq\\)`,
    )
    await t.rejects(checkPostgres(options), { code: 'POSTGRES_UNUSABLE', message: said })
    t.match(await doctorPostgres(options), { ok: false, problems: [said] })
    await t.rejects(reopen(), { code: 'POSTGRES_KEYS_GONE', message: said })

    const { problems } = await doctorPostgres(options)
    await server.query(problems[0]!.slice(problems[0]!.indexOf('ALTER TABLE')))
    await checkPostgres(options)
    const again = await reopen()
    t.match(await again.journal.list(), [{ id: 'one' }])
    await again.journal.write(firstWrite('two'))
  })
}
