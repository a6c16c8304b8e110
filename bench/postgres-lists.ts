import { createPostgresStorage } from '../src/storage/postgres/storage.js'
import { format, median, percentile, verdict } from './lib/figures.js'
import { PostgresServer } from './lib/postgres-server.js'

const SESSIONS = 1_000_000
const PROFILES = 20
const PAGES = 200
const LIMIT = 50
const TARGET_MS = 15
const LEASE_MS = 10_000

/** Of each thousand: nine hundred that have ended, the others idle; very few failed, run, or have a profile of their own. */
const FILL = `INSERT INTO lists.sessions
    (id, profile, generation, reserved_seq, state, ended, ended_at, engine, place, status)
  SELECT 'session-' || n, profile, 'g', 0,
    json_build_object('info', json_build_object('id', 'session-' || n, 'status', status, 'engine', 'provider',
      'profile', profile, 'cwd', '/srv/agents', 'title', 'Session ' || n, 'createdAt', n, 'lastActivityAt', n))::text,
    CASE WHEN status IN ('closed', 'failed') THEN status END, CASE WHEN status IN ('closed', 'failed') THEN n END, 'provider', n * 1000, status
  FROM (SELECT n, CASE WHEN n % ${SESSIONS / 100} = 0 THEN 'rare' ELSE 'profile-' || n % ${PROFILES} END AS profile,
    CASE WHEN n % ${SESSIONS / 100} = 10 THEN 'running' WHEN n % ${SESSIONS / 100} = 1 THEN 'failed' WHEN n % 10 = 0 THEN 'idle' ELSE 'closed' END AS status
    FROM generate_series(1, ${SESSIONS}) AS n) AS s`

const QUERIES = {
  'the newest': {},
  'far behind the newest': { before: (SESSIONS / 2) * 1000 },
  'of one profile': { profiles: ['profile-7'] },
  'of one profile and status': { profiles: ['profile-10'], status: 'idle' },
  'of a profile that has 100': { profiles: ['rare'] },
  'of the 100 that run': { status: 'running' },
  'of the 100 that failed': { status: 'failed' },
} as const

/** A page of sessions of all nodes, of which there are very many, as a node asks the database for it. */
export async function postgresLists(): Promise<void> {
  const server = await PostgresServer.start()
  const storage = createPostgresStorage({ url: server.url, schema: 'lists' })
  try {
    storage.cluster!.announce(
      { name: 'a', url: 'http://127.0.0.1:1', protocol: 1, version: '0', slots: 0, config: '', profiles: [] },
      LEASE_MS,
    )
    await storage.open()
    await server.query(FILL)
    await server.query('ANALYZE lists.sessions')
    for (const [which, query] of Object.entries(QUERIES)) {
      const ms: number[] = []
      for (let n = 0; n < PAGES; n++) {
        const start = performance.now()
        const { sessions } = await storage.journal.listed!({ ...query, limit: LIMIT })
        ms.push(performance.now() - start)
        if (sessions.length !== LIMIT) throw new Error(`A page of ${LIMIT} has ${sessions.length} sessions.`)
      }
      const p50 = median(ms)
      console.log(
        `a page of ${LIMIT} among ${SESSIONS} sessions, ${which}: p50 ${format(p50)} ms, p99 ${format(percentile(ms, 0.99))} ms${verdict(p50, TARGET_MS, 'ms')}`,
      )
    }
  } finally {
    await storage.close()
    await server.stop()
  }
}
