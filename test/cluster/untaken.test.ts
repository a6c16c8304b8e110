import pg from 'pg'
import t from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

// as long as a loaded machine may keep a node that lives from saying so
const LEASE_MS = 10_000

if (hasPostgres())
  t.test(
    'a takeover for which the database has no connection left is in the log, once, and so is its end',
    async (t) => {
      const server = await postgres()
      const told: string[] = []
      const note = (fields: { err?: Error; node?: string }, message: string) => {
        if (/gone|had/.test(message))
          told.push(`${message}${fields.err ? `: ${(fields.err as Error & { code: string }).code}` : ''}`)
      }
      const logger = { ...silentLogger, info: note, warn: note }
      const { nodes } = await clusterOf(t, ['a', 'b'], { logger, leaseMs: LEASE_MS })
      const crowd: pg.Client[] = []
      const leave = () => Promise.all(crowd.splice(0).map((client) => client.end()))
      t.teardown(leave)
      /** @returns whether there was room for one more */
      const enter = async () => {
        const client = new pg.Client({ connectionString: server.url() })
        client.on('error', () => {})
        const isIn = await client.connect().then(
          () => true,
          () => false,
        )
        if (isIn) crowd.push(client)
        return isIn
      }
      while (await enter());
      nodes[1].cutOff()
      // what it leaves room for is taken, too, until somebody has asked for it in vain
      while ((await enter()) || told.length === 0);
      let beats = 0
      nodes[0].storage.cluster!.on('beat', () => void beats++)
      await until(() => beats > 2, 'that it was tried a few times')
      t.same(told, ['what a node had that is gone cannot be taken over; it is tried with each beat: POSTGRES_BUSY'])
      await leave()
      await until(() => told.length > 2, 'that it was taken over')
      t.same(told.slice(1).sort(), [
        'this node goes on with what another one had',
        'what a node had that is gone can be taken over again',
      ])
    },
  )
