import { type AddressInfo, connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { TABLES } from '../../src/storage/postgres/schema.js'
import { createPostgresStorage, type PostgresStorage } from '../../src/storage/postgres/storage.js'
import { noPostgres, TestPostgres } from '../fixtures/postgres.js'

let server: Promise<TestPostgres> | undefined

/** The one PostgreSQL of this file. @param options of the first to ask */
export function postgres(options?: Parameters<typeof TestPostgres.start>[0]): Promise<TestPostgres> {
  if (!server) {
    server = TestPostgres.start(options)
    t.teardown(async () => (await server)?.stop())
  }
  return server
}

/** Says in the name of the file's only test why nothing is tested. @returns whether there is something to test on */
export function hasPostgres(): boolean {
  const why = noPostgres()
  if (why !== undefined) t.test(`not tested: ${why}`, { skip: why }, async () => {})
  return why === undefined
}

export interface PostgresWorld {
  server: TestPostgres
  schema: string
  storage: PostgresStorage
  reopen(): Promise<PostgresStorage>
}

let schemas = 0

/** An open storage in a schema of its own, closed at the end of the test; one that is `shared` is emptied instead of made. */
export async function postgresWorld(
  t: Test,
  { now = Date.now, shared = false }: { now?: () => number; shared?: boolean } = {},
): Promise<PostgresWorld> {
  const server = await postgres()
  const schema = shared ? 'shared' : `gateway_${++schemas}`
  const opened = async () => {
    const storage = createPostgresStorage({ url: server.url(), schema, now })
    t.teardown(() => storage.close())
    await storage.open()
    return storage
  }
  if (shared && (await server.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])).length > 0)
    await server.query(TABLES.map((table) => `DELETE FROM ${schema}.${table}`).join(';'))
  const world: PostgresWorld = {
    ...{ server, schema },
    storage: await opened(),
    async reopen() {
      await world.storage.close()
      world.storage = await opened()
      return world.storage
    },
  }
  return world
}

/** Leads new connections to one server, and keeps those that there are; `to` leads them to another one. */
export async function leading(t: Test, server: TestPostgres): Promise<{ url: string; to(server: TestPostgres): void }> {
  let leadsTo = server
  const proxy = createServer((client) => {
    const upstream = connect(leadsTo.socket)
    client.pipe(upstream).pipe(client)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      socket.on('error', () => {}).on('close', () => other.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  return {
    url: server.url({ host: `127.0.0.1:${(proxy.address() as AddressInfo).port}` }),
    to(other) {
      leadsTo = other
    },
  }
}

/** Passes one kind of connection on, and cuts it when it is told to. */
export interface CuttableProxy {
  url: string
  /**
   * Cuts the connection at the next request with this text: `before` it reaches the server, or once it was done and before the answer is
   * heard.
   * @returns resolves when it was cut
   */
  cut(when: 'before' | 'answered', text: RegExp): Promise<void>
  /** The next request with this text never arrives, nor does what follows it on its connection, and nobody is told. @returns as `cut` */
  lose(text: RegExp): Promise<void>
  /** From now on nobody gets through. @returns resolves when somebody has tried */
  shut(): Promise<void>
  /** From now on they do again. */
  open(): void
  /** From now on nothing gets through, and nobody is told. */
  deafen(): void
  /** Bytes that were sent to the server so far. */
  readonly sent: number
  /** From now on the server says in Czech that something is an error, as with `lc_messages = 'cs_CZ'`. */
  translate(): void
}

export async function cuttable(t: Test, server: TestPostgres): Promise<CuttableProxy> {
  let plan: { when: 'before' | 'answered'; text: RegExp; done: () => void } | undefined
  let lost: { text: RegExp; done: () => void } | undefined
  let onTried: (() => void) | undefined
  let isDeaf = false
  let isCzech = false
  let sent = 0
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    if (onTried) {
      onTried()
      return client.destroy()
    }
    const upstream = connect(server.socket)
    const destroy = () => {
      client.destroy()
      upstream.destroy()
    }
    let isLast = false
    let isLost = false
    client.on('data', (chunk) => {
      isLost ||= lost?.text.test(chunk.toString('latin1')) ?? false
      if (isLost) lost?.done()
      if (isDeaf || isLost) return
      if (plan?.text.test(chunk.toString('latin1'))) {
        if (plan.when === 'before') {
          plan.done()
          return destroy()
        }
        isLast = true
      }
      sent += chunk.length
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (isCzech) chunk = Buffer.from(chunk.toString('latin1').replaceAll('SERROR\0', 'SCHYBA\0'), 'latin1')
      if (!isLast) return client.write(chunk)
      plan?.done()
      destroy()
    })
    // who is gone does not notice that the other one goes
    client.on('end', () => isDeaf || destroy())
    for (const socket of [client, upstream]) socket.on('error', destroy).on('close', destroy)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  return {
    url: server.url({ host: `127.0.0.1:${(proxy.address() as AddressInfo).port}` }),
    get sent() {
      return sent
    },
    cut: (when, text) =>
      new Promise((resolve) => {
        const done = () => {
          plan = undefined
          resolve()
        }
        plan = { when, text, done }
      }),
    lose: (text) =>
      new Promise((resolve) => {
        const done = () => {
          lost = undefined
          resolve()
        }
        lost = { text, done }
      }),
    shut: () => new Promise((resolve) => (onTried = resolve)),
    open() {
      onTried = undefined
    },
    deafen() {
      isDeaf = true
    },
    translate() {
      isCzech = true
    },
  }
}
