import pg from 'pg'
import { createPostgresStorage } from '../src/storage/postgres/storage.js'
import type { GatewayStorage } from '../src/storage/storage.js'
import { format, interleave, line, median } from './lib/figures.js'
import { PostgresServer } from './lib/postgres-server.js'

const LEASE_MS = 10_000
const SESSIONS = 20
const EVENTS_PER_SLICE = 20_000
const ROUNDS = 7
/** As the gateway does: half of that again is reserved when half of it is used. */
const RESERVED_AHEAD = 500
const BATCHES = [
  { size: 10, target: 1.6 },
  { size: 100, target: 1.3 },
] as const
const PADDING = 'x'.repeat(980)
const PLAIN = 'INSERT INTO plain (session, seq, json) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])'

/**
 * What an event of 1 KB costs the server of the database, and how many it takes a second, from one node and from three; beside as many
 * connections with an insert that checks nothing and belongs to nobody.
 */
export async function postgresEvents(): Promise<void> {
  const server = await PostgresServer.start()
  try {
    await server.query('CREATE TABLE plain (session bigint, seq bigint, json text, PRIMARY KEY (session, seq))')
    for (const count of [1, 3])
      for (const { size, target } of BATCHES) {
        const [ours, plain] = [await nodes(server, count), await connections(server, count)]
        const [rates, ratesOfPlain] = [[] as number[], [] as number[]]
        const perEvent = (writers: readonly Writer[], perSecond: number[]) => async () => {
          const start = performance.now()
          const cpu = await server.cpuOf(() => Promise.all(writers.map(({ write }) => slice(write, size, count))))
          perSecond.push((EVENTS_PER_SLICE / (performance.now() - start)) * 1000)
          return cpu / EVENTS_PER_SLICE
        }
        const paired = await interleave(ROUNDS, perEvent(ours, rates), perEvent(plain, ratesOfPlain))
        const from = `${size} in a write, from ${count === 1 ? 'one node' : `${count} nodes`}`
        console.log(line(`an event of 1 KB, ${from}, CPU of PostgreSQL`, paired, 'us', target))
        console.log(`  ${format(median(rates))} events a second, baseline ${format(median(ratesOfPlain))}`)
        await Promise.all([...ours, ...plain].map(({ close }) => close()))
      }
  } finally {
    await server.stop()
  }
}

interface Writer {
  write(size: number): Promise<void>
  close(): Promise<void>
}

async function slice(write: Writer['write'], size: number, writers: number): Promise<void> {
  for (let written = 0; written < EVENTS_PER_SLICE / writers; written += size) await write(size)
}

/** Those of one gateway each. */
async function nodes(server: PostgresServer, count: number): Promise<Writer[]> {
  const schema = `of_${Date.now()}`
  const opened: Writer[] = []
  for (let n = 0; n < count; n++) {
    const storage = createPostgresStorage({ url: server.url, schema })
    const node = {
      name: `node-${n}`,
      url: 'http://127.0.0.1:1',
      protocol: 1,
      version: '0',
      slots: 0,
      config: '',
      profiles: [],
    }
    storage.cluster!.announce(node, LEASE_MS)
    await storage.open()
    opened.push(await journal(storage, `of-${n}`))
  }
  return opened
}

/** Writes events of several sessions that come in one turn of the event loop. */
async function journal(storage: GatewayStorage, prefix: string): Promise<Writer> {
  const seqs = new Map<string, number>()
  for (let n = 0; n < SESSIONS; n++) {
    const id = `${prefix}-${n}`
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
          return storage.journal.write({
            ...{ id, events: [{ seq, json: JSON.stringify({ seq, ts: 1, PADDING }) }] },
            ...(seq % RESERVED_AHEAD === 1 && { reservedSeq: seq + 2 * RESERVED_AHEAD }),
          })
        }),
      )
    },
    close: () => storage.close(),
  }
}

const connections = (server: PostgresServer, count: number): Promise<Writer[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => inserts(server, n)))

async function inserts(server: PostgresServer, n: number): Promise<Writer> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const [last] = (
    await client.query(`SELECT coalesce(max(seq), 0)::integer AS seq FROM plain WHERE session / ${SESSIONS} = ${n}`)
  ).rows
  let seq = last.seq as number
  return {
    async write(size: number) {
      const seqs = Array.from({ length: size }, () => ++seq)
      const values = [
        seqs.map((one) => n * SESSIONS + (one % SESSIONS)),
        seqs,
        seqs.map((one) => JSON.stringify({ seq: one, ts: 1, PADDING })),
      ]
      await client.query({ name: 'plain', text: PLAIN, values })
    },
    close: () => client.end(),
  }
}
