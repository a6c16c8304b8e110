import pg from 'pg'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { clusterWorld } from './cluster-world.js'
import { hasPostgres, postgres } from './postgres-world.js'

const LEASE_MS = 3_000
const WAITING = `SELECT pid FROM pg_stat_activity WHERE application_name = 'session-gateway' AND wait_event_type = 'Lock'`

if (hasPostgres())
  t.test('a node does not use up the connections while somebody has locked what it renews its lease by', async (t) => {
    const server = await postgres()
    const world = await clusterWorld(t)
    const { storage } = await world.node('a', LEASE_MS)
    const operator = new pg.Client({ connectionString: server.url() })
    await operator.connect()
    t.teardown(() => operator.end())
    await operator.query(`BEGIN; LOCK TABLE ${world.schema}.leases`)
    const seen = new Set<unknown>()
    let most = 0
    await until(async () => {
      const waiting = await server.query(WAITING)
      for (const { pid } of waiting) seen.add(pid)
      most = Math.max(most, waiting.length)
      return seen.size >= 5
    }, 'beats that the lock holds up')
    t.ok(most <= 2, `${most} of them waited at once`)
    await operator.query('ROLLBACK')
    await until(() => storage.cluster.state === 'serving', 'the next beat')
  })
