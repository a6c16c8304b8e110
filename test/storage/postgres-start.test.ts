import t, { type Test } from 'tap'
import { createPostgresStorage, type PostgresStorage } from '../../src/storage/postgres/storage.js'
import { until } from '../fixtures/build.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'

const ENDED = 20_000

/** A schema with very many sessions and jobs that have ended, and sessions that sleep, as statistics know them. */
async function manyEnded(t: Test) {
  const { server, schema, storage } = await postgresWorld(t)
  await storage.close()
  await server.query(
    `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state, ended, ended_at, engine, place, status)
     SELECT 'ended-' || n, 'one', 'g', 0, '{}', 'closed', n, 'provider', n, 'closed' FROM generate_series(1, ${ENDED}) AS n`,
  )
  await server.query(
    `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state, asleep, engine, place, status)
     SELECT 'asleep-' || n, 'one', 'g', 0, '{}', 'parked', 'provider', ${ENDED} + n, 'parked' FROM generate_series(1, ${ENDED}) AS n`,
  )
  await server.query(
    `INSERT INTO ${schema}.jobs (id, status, profile, priority, created_at, finished_at, begins, info, request)
     SELECT 'ended-' || n, 'succeeded', 'one', 0, n, n, false, '{}', '{}' FROM generate_series(1, ${ENDED}) AS n`,
  )
  await server.query(`ANALYZE ${schema}.sessions, ${schema}.jobs`)
  const rowsRead = async (table: string) => {
    const [row] = await server.query(
      `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) AS rows FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2`,
      [schema, table],
    )
    return Number(row!.rows)
  }
  // a server counts when a connection ends
  const nobodyElse = () =>
    until(async () => {
      const others = await server.query(
        `SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      )
      return others.length === 0
    }, 'that all connections have ended')
  return {
    /** @returns how many rows were read of sessions and jobs */
    async of(run: (storage: PostgresStorage) => Promise<void>): Promise<{ sessions: number; jobs: number }> {
      await nobodyElse()
      const [sessions, jobs] = await Promise.all([rowsRead('sessions'), rowsRead('jobs')])
      const storage = createPostgresStorage({ url: server.url(), schema })
      try {
        await run(storage)
      } finally {
        await storage.close()
      }
      await nobodyElse()
      return { sessions: (await rowsRead('sessions')) - sessions, jobs: (await rowsRead('jobs')) - jobs }
    },
  }
}

if (hasPostgres()) {
  const ALL = { limit: 50 }

  t.test('a start reads nothing of what has ended or sleeps, however much it is, alone', async (t) => {
    const read = await (await manyEnded(t)).of((storage) => storage.open())
    t.ok(read.sessions + read.jobs < ENDED / 10, `${read.sessions} sessions and ${read.jobs} jobs were read`)
  })

  t.test('and as a node, which takes over what nobody has', async (t) => {
    const read = await (await manyEnded(t)).of(async (storage) => {
      const member = { name: 'a', url: 'http://a.test', protocol: 1, version: '1', slots: 1, config: '', profiles: [] }
      storage.cluster.announce(member, 10_000)
      await storage.open()
    })
    t.ok(read.sessions + read.jobs < ENDED / 10, `${read.sessions} sessions and ${read.jobs} jobs were read`)
  })

  t.test('a page of what there is little of reads nothing else', async (t) => {
    const read = await (await manyEnded(t)).of(async (storage) => {
      await storage.open()
      for (const profiles of [undefined, ['one']]) {
        const scope = profiles && { profiles }
        await storage.queue.list({ ...ALL, ...scope, status: ['running', 'parked'] })
        await storage.journal.atRest!({ ...ALL, ...scope, status: 'failed' })
        await storage.journal.atRest!({ ...ALL, ...scope, engine: 'cli' })
      }
    })
    t.ok(read.sessions < ENDED / 10, `${read.sessions} sessions were read`)
    t.ok(read.jobs < ENDED / 10, `${read.jobs} jobs were read`)
  })
}
