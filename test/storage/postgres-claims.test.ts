import pg from 'pg'
import t from 'tap'
import { inSchema } from '../../src/storage/postgres/schema.js'
import { jobPlans } from '../../src/storage/postgres/tables/jobs.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'
import { jobOf } from './sqlite-records.js'

const COPIED = 'rev, status, profile, priority, created_at, next_run_at, ready, finished_at, begins, info, request'

if (hasPostgres())
  t.test('a claim reads what it takes, and not all that wait, where they have one profile', async (t) => {
    const { server, schema, storage } = await postgresWorld(t)
    await storage.queue.add(jobOf('first'))
    const jobs = inSchema('@jobs', schema)
    await server.query(
      `INSERT INTO ${jobs} (id, ${COPIED}) SELECT 'job ' || series.n, ${COPIED} FROM ${jobs}, generate_series(1, 20000) AS series (n)`,
    )
    // as the server does by itself, sooner or later
    await server.query(`ANALYZE ${jobs}`)
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    t.teardown(() => client.end())
    // as a statement that was asked for some times already
    await client.query('SET plan_cache_mode = force_generic_plan')
    for (const home of [undefined, 'here']) {
      const { statements } = jobPlans(new Map(), () => 'c', 1)['jobs.claim'](1, 8, home === undefined ? {} : { home })
      const { sql, values } = statements.at(-1)!
      const name = `claim_${home}`
      await client.query(`PREPARE ${name} AS ${inSchema(sql, schema)}`)
      const given = values.map((value) => (Buffer.isBuffer(value) ? "'{}'" : client.escapeLiteral(String(value))))
      const args = values.map((value, index) => (value === null ? 'NULL' : given[index])).join(', ')
      const { rows } = await client.query(`EXPLAIN EXECUTE ${name}(${args})`)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      t.notMatch(plan, /Seq Scan on jobs/, plan)
      t.match(plan, /Index Scan using jobs_ready/, plan)
    }
  })
