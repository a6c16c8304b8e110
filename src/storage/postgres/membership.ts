import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import { VERSION } from '../../lib/package-root.js'
import { StorageError } from '../storage.js'
import { failureOf } from './failures.js'
import { Link, type LinkOptions } from './link.js'
import { StatementError } from './pipeline.js'
import { statement } from './plan.js'
import { migrate } from './schema.js'

/** A server that has just started has forgotten who holds what: whoever had it may come back so long. */
const GRACE_MS = 10_000
const LOOK_AGAIN_MS = 250
const RETRY: Backoff = { firstMs: 100, longestMs: 5_000 }

const LOCK = `SELECT pg_try_advisory_lock(hashtextextended('session-gateway has ' || oid, 0)) AS mine FROM pg_namespace WHERE nspname = $1`
const UNLOCK = `SELECT pg_advisory_unlock(hashtextextended('session-gateway has ' || oid, 0)) FROM pg_namespace WHERE nspname = $1`
/** So that the server finds out within half a minute that a host is gone, and its lock with it. */
const KEEP_ALIVE = 'SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3'
const HOLDER = 'SELECT host, pid, started_at AS "startedAt", version FROM @members ORDER BY n DESC LIMIT 1'
const UPTIME = 'SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS ms'

/** Who uses a schema. */
export interface Holder {
  pid: number
  host: string
  /** Epoch milliseconds. */
  startedAt: number
  version: string
}

/**
 * The right to write to a schema: a row that every transaction that writes asks for, and beside it a lock that lasts as long as its
 * connection, by which others see that the process is alive. Who takes the lock after it ended removes the row; from then on nothing that
 * the other process sends is done, whatever it believes.
 */
export class Membership {
  readonly n: number
  readonly #options: LinkOptions
  #link: Link
  #isOver = false

  private constructor(n: number, link: Link, options: LinkOptions) {
    this.n = n
    this.#link = link
    this.#options = options
    this.#watch()
  }

  /**
   * Makes the schema usable, and this process the one that uses it.
   * @throws StorageError when another one does
   */
  static async join(options: LinkOptions): Promise<Membership> {
    const link = await Link.open(options)
    try {
      await migrate(link.client, options.schema)
      await link.client.query(KEEP_ALIVE)
      await takeLock(link, options)
      const started = Date.now() - process.uptime() * 1000
      const rows = await link.run([
        statement('DELETE FROM @members'),
        // a crash has ended the requests that had taken a key and had made nothing yet
        statement('DELETE FROM @idempotency_keys WHERE answer IS NULL AND made IS NULL'),
        statement(
          'INSERT INTO @members (host, pid, started_at, version) VALUES ($1, $2, $3, $4) RETURNING n',
          ...[hostname(), process.pid, started, VERSION],
        ),
      ])
      return new Membership(rows.at(-1)![0]!.n as number, link, options)
    } catch (error) {
      await link.end()
      throw failureOf(error instanceof StatementError ? error.error : error, options.place)
    }
  }

  /** Lets another process have it at once. */
  async leave(): Promise<void> {
    this.#isOver = true
    // it may be back since its restart, and the lock not yet
    const link = this.#link.isLost ? await Link.open(this.#options).catch(() => undefined) : this.#link
    link?.ref()
    await link?.run([statement('DELETE FROM @members WHERE n = $1', this.n)]).catch(() => {})
    await link?.end()
  }

  #watch(): void {
    const link = this.#link
    link.unref()
    void link.lost.then(() => {
      if (!this.#isOver) void this.#takeAgain()
    })
  }

  /** Whoever has the row may write, with or without the lock: it is taken again so that others see that somebody has it. */
  async #takeAgain(): Promise<void> {
    this.#link.destroy()
    for (let tries = 1; !this.#isOver; tries++) {
      try {
        const link = await Link.open(this.#options)
        await link.client.query(KEEP_ALIVE)
        const [row] = (await link.client.query(LOCK, [this.#options.schema])).rows
        if (row?.mine && !this.#isOver) {
          this.#link = link
          return this.#watch()
        }
        await link.end()
      } catch {
        // it is not there yet
      }
      await sleep(delayAfter(tries, RETRY), undefined, { ref: false })
    }
  }
}

/** @throws StorageError when another process has it */
export async function takeLock(link: Link, { schema, place }: LinkOptions): Promise<void> {
  for (;;) {
    const { rows } = await link.client.query(LOCK, [schema])
    const holder = await holderOf(link)
    if (rows[0]?.mine !== true) throw held(place, schema, holder)
    if (!holder || isGone(holder)) return
    const uptime = await link.client.query(UPTIME)
    if (Number(uptime.rows[0].ms) > GRACE_MS) return
    await link.client.query(UNLOCK, [schema])
    await sleep(LOOK_AGAIN_MS)
  }
}

/** Who has the schema, or had it and did not leave. */
export async function holderOf(link: Link): Promise<Holder | undefined> {
  const [rows] = await link.run([statement(HOLDER)])
  return rows![0] as unknown as Holder | undefined
}

/** A process of this host that is not there any more. Of another host nobody here can tell. */
function isGone({ host, pid }: Holder): boolean {
  if (host !== hostname()) return false
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

function held(place: string, schema: string, holder: Holder | undefined): StorageError {
  const by = holder
    ? `process ${holder.pid} on host ${holder.host}, started at ${new Date(holder.startedAt).toISOString()}`
    : 'another process that is just starting or ending'
  return new StorageError(
    'STORAGE_HELD',
    `The schema ${schema} of ${place} is in use by ${by}. Stop it first, or give this gateway a schema of its own (storage.postgres.schema).`,
  )
}
