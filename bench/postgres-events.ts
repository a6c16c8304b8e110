import pg from 'pg'
import { createPostgresStorage } from '../src/storage/postgres/storage.js'
import { interleave, line } from './lib/figures.js'
import { PostgresServer } from './lib/postgres-server.js'

const SESSIONS = 20
const EVENTS_PER_SLICE = 20_000
const ROUNDS = 7
const BATCHES = [
  { size: 10, target: 1.6 },
  { size: 100, target: 1.3 },
] as const
const PADDING = 'x'.repeat(980)
const PLAIN = 'INSERT INTO plain (session, seq, json) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])'

/** What an event of 1 KB costs the server of the database, beside an insert that checks nothing and belongs to nobody. */
export async function postgresEvents(): Promise<void> {
  const server = await PostgresServer.start()
  try {
    await server.query('CREATE TABLE plain (session bigint, seq bigint, json text, PRIMARY KEY (session, seq))')
    for (const { size, target } of BATCHES) {
      const [ours, plain] = [await journal(server), await inserts(server)]
      const perEvent = (write: (size: number) => Promise<void>) => async () =>
        (await server.cpuOf(async () => {
          for (let written = 0; written < EVENTS_PER_SLICE; written += size) await write(size)
        })) / EVENTS_PER_SLICE
      const paired = await interleave(ROUNDS, perEvent(ours.write), perEvent(plain.write))
      console.log(line(`an event of 1 KB, ${size} in a write, CPU of PostgreSQL`, paired, 'us', target))
      await Promise.all([ours.close(), plain.close()])
    }
  } finally {
    await server.stop()
  }
}

/** The journal of a gateway: events of several sessions that come in one turn of the event loop. */
async function journal(server: PostgresServer) {
  const storage = createPostgresStorage({ url: server.url, schema: `of_${Date.now()}` })
  await storage.open()
  const seqs = new Map<string, number>()
  for (let n = 0; n < SESSIONS; n++) {
    const id = `session-${n}`
    seqs.set(id, 0)
    const info = { id, status: 'idle', engine: 'provider', profile: 'bench', createdAt: 1, lastActivityAt: 1 }
    const origin = { profile: 'bench', generation: 'g', config: { cwd: '/' }, epoch: 'e' }
    await storage.journal.write({ id, origin, state: { info: info as never } })
  }
  const ids = [...seqs.keys()]
  let turn = 0
  return {
    async write(size: number) {
      await Promise.all(
        Array.from({ length: size }, () => {
          const id = ids[turn++ % SESSIONS]!
          const seq = seqs.get(id)! + 1
          seqs.set(id, seq)
          return storage.journal.write({ id, events: [{ seq, json: JSON.stringify({ seq, ts: 1, PADDING }) }] })
        }),
      )
    },
    close: () => storage.close(),
  }
}

async function inserts(server: PostgresServer) {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const [last] = (await client.query('SELECT coalesce(max(seq), 0)::integer AS seq FROM plain')).rows
  let seq = last.seq as number
  return {
    async write(size: number) {
      const seqs = Array.from({ length: size }, () => ++seq)
      const values = [
        seqs.map((one) => one % SESSIONS),
        seqs,
        seqs.map((one) => JSON.stringify({ seq: one, ts: 1, PADDING })),
      ]
      await client.query({ name: 'plain', text: PLAIN, values })
    },
    close: () => client.end(),
  }
}
