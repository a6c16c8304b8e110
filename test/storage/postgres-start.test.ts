import t from 'tap'
import { until } from '../fixtures/build.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'

const ENDED = 20_000

if (hasPostgres())
  t.test('a start reads none of the sessions that have ended, however many they are', async (t) => {
    const { server, schema, storage, reopen } = await postgresWorld(t)
    await server.query(
      `INSERT INTO ${schema}.sessions (id, profile, generation, reserved_seq, state, ended, ended_at, engine, place, status)
       SELECT 'ended-' || n, 'one', 'g', 0, '{}', 'closed', n, 'provider', n, 'closed' FROM generate_series(1, ${ENDED}) AS n`,
    )
    await server.query(`ANALYZE ${schema}.sessions`)
    const read = async () => {
      const [row] = await server.query(
        `SELECT seq_tup_read AS rows, idx_scan AS looks FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'sessions'`,
        [schema],
      )
      return { rows: Number(row!.rows), looks: Number(row!.looks) }
    }
    await storage.close()
    const before = await read()
    const alone = await reopen()
    await alone.close()
    // the server counts when a connection ends
    await until(async () => (await read()).looks > before.looks, 'that it is counted')
    t.ok(
      (await read()).rows - before.rows < ENDED,
      `${(await read()).rows - before.rows} rows were read one after the other`,
    )
  })
