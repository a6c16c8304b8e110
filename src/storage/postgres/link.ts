import type { Socket } from 'node:net'
import { startLongTimer } from '../../lib/clock.js'
import type { Client } from './driver.js'
import { checkUrl, failureOf } from './failures.js'
import { NamedStatements, Pipeline, type Row, type Statement } from './pipeline.js'
import { inSchema } from './schema.js'

const CONNECT_TIMEOUT_MS = 10_000
const REPLY_TIMEOUT_MS = 30_000
const KEEP_ALIVE_MS = 10_000
/** The goodbye of one who is gone never comes either. */
const END_TIMEOUT_MS = 1_000
/** Each would cut off whoever waits for another one, or for something to do. */
const TIMEOUTS = [
  ...['statement_timeout', 'lock_timeout', 'transaction_timeout'],
  ...['idle_in_transaction_session_timeout', 'idle_session_timeout'],
].map((name) => [name, '0'])
/** Whoever waits for a row or a lock is to see what was written meanwhile. */
const ISOLATION = ['default_transaction_isolation', 'read committed']
/** A number comes back as it was written, and a NULL in a list is none of the text NULL. */
const EXACT = [
  ['extra_float_digits', '1'],
  ['array_nulls', 'on'],
]
const FIT = [...TIMEOUTS, ISOLATION, ...EXACT].map(([name, value]) => `('${name}', '${value}')`).join()
const UNFIT = `SELECT array_agg(name || ' = ' || quote_literal(fit))
  FROM pg_settings JOIN (VALUES ${FIT}) AS wanted (name, fit) USING (name) WHERE setting <> fit`
/** Of the process that serves a connection; `since` is null to who acts as another role than the one that has logged in. */
const BACKEND = 'SELECT pid, backend_start::text AS since FROM pg_stat_activity WHERE pid = pg_backend_pid()'
/** For one transaction: connections are seen, and ended, by the role that has logged in, which may be set to act as another one. */
export const AS_LOGIN = `SELECT set_config('role', 'none', true)`

const END_OTHER = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = $1 AND backend_start::text = $2 AND usename = current_user AND pid <> pg_backend_pid()`

export interface LinkOptions {
  url: string
  /** As failures name the database. */
  place: string
  schema: string
  namedStatements: boolean
  /** How long it may take to connect, and again until what a new connection asks first is answered. Default 10 s, then as any reply. */
  connectTimeoutMs?: number
  /** Whoever has not answered for so long is gone: a cut connection does not fail, it hangs. Default 30 s. */
  replyTimeoutMs?: number
}

/** One connection to the database. */
export class Link {
  readonly client: Client
  /** Resolves when it is lost or ended. */
  readonly lost: Promise<void>
  /** Of the process that serves it. */
  backend = { pid: 0, since: '' }
  readonly #schema: string
  readonly #named: NamedStatements | undefined
  readonly #replyTimeoutMs: number
  /** Texts for this schema, made once. */
  readonly #texts = new Map<string, string>()
  #isLost = false
  /** Until what was asked last is answered; never rejects. */
  #underWay: Promise<void> | undefined

  private constructor(client: Client, options: LinkOptions) {
    const { schema, namedStatements, replyTimeoutMs = REPLY_TIMEOUT_MS } = options
    this.client = client
    this.#schema = schema
    this.#replyTimeoutMs = replyTimeoutMs
    this.#named = namedStatements ? new NamedStatements() : undefined
    this.lost = new Promise((resolve) => {
      const onEnd = () => {
        this.#isLost = true
        resolve()
      }
      client.once('end', onEnd)
      client.on('error', onEnd)
    })
  }

  /** @param signal gives up on it while it connects @throws StorageError */
  static async open(options: LinkOptions, signal?: AbortSignal): Promise<Link> {
    const { url, place, connectTimeoutMs, replyTimeoutMs = REPLY_TIMEOUT_MS } = options
    checkUrl(url)
    let client: Client | undefined
    let giveUp: (() => void) | undefined
    let timer: NodeJS.Timeout | undefined
    try {
      // loaded only now: most gateways have no use for it
      const { default: driver } = await import('pg')
      signal?.throwIfAborted()
      client = new driver.Client({
        connectionString: url,
        fallback_application_name: 'session-gateway',
        connectionTimeoutMillis: connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      })
      const link = new Link(client, options)
      giveUp = () => link.destroy()
      signal?.addEventListener('abort', giveUp, { once: true })
      await client.connect()
      // who lets one in may not be who answers, and may go away in between
      timer = setTimeout(giveUp, connectTimeoutMs ?? replyTimeoutMs)
      const { rows } = await client.query(`SELECT backend.*, (${UNFIT}) AS unfit FROM (${BACKEND}) AS backend`)
      const { unfit, ...backend } = rows[0] as { pid: number; since: string | null; unfit: string[] | null }
      link.backend = { ...backend, since: backend.since ?? (await sinceOf(client)) }
      // whatever the role or the database is set to
      if (unfit) await client.query(unfit.map((setting) => `SET ${setting}`).join('; '))
      return link
    } catch (error) {
      void client?.end().catch(() => {})
      throw failureOf(error, place)
    } finally {
      clearTimeout(timer)
      if (giveUp) signal?.removeEventListener('abort', giveUp)
    }
  }

  /** Somebody between gives other people's connections: who lets one in is not who answers. */
  get isRelayed(): boolean {
    return (this.client as unknown as { processID: number | null }).processID !== this.backend.pid
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** One transaction, in one round trip, after what was asked before: the driver takes one at a time. @throws StatementError */
  async run(statements: readonly Statement[]): Promise<Row[][]> {
    while (this.#underWay) await this.#underWay
    const pipeline = new Pipeline(
      statements.map(({ sql, values }) => ({ sql: this.#textOf(sql), values })),
      this.#named,
    )
    // a reply that never comes is no reason to wait for ever
    const timer = startLongTimer(this.#replyTimeoutMs, () => this.destroy())
    const over = () => {
      this.#underWay = undefined
    }
    this.#underWay = pipeline.done.then(over, over)
    this.client.query(pipeline)
    try {
      return await pipeline.done
    } finally {
      timer.cancel()
    }
  }

  /** Ends what one that was lost has left in the server, which may wait for a lock there. @throws StatementError */
  async endOther({ backend: { pid, since } }: Link): Promise<void> {
    await this.run([
      { sql: AS_LOGIN, values: [] },
      { sql: END_OTHER, values: [pid, since] },
    ])
  }

  /** Lets the process end while nothing is asked. */
  unref(): void {
    this.#stream.unref()
  }

  ref(): void {
    this.#stream.ref()
  }

  async end(): Promise<void> {
    // whoever waits for it is not to end before
    this.ref()
    const timer = setTimeout(() => this.destroy(), END_TIMEOUT_MS)
    await this.client.end().catch(() => {})
    clearTimeout(timer)
  }

  /** Cuts the connection; what is under way on it fails. */
  destroy(): void {
    this.#stream.destroy()
  }

  get #stream(): Socket {
    return (this.client as unknown as { connection: { stream: Socket } }).connection.stream
  }

  #textOf(sql: string): string {
    let text = this.#texts.get(sql)
    if (text === undefined) {
      text = inSchema(sql, this.#schema)
      this.#texts.set(sql, text)
    }
    return text
  }
}

async function sinceOf(client: Client): Promise<string> {
  const answers = (await client.query(`${AS_LOGIN}; ${BACKEND}`)) as unknown as { rows: Link['backend'][] }[]
  return answers[1]!.rows[0]!.since
}
