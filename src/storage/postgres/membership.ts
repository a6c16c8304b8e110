import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import { VERSION } from '../../lib/package-root.js'
import type { ClusterNode } from '../cluster.js'
import { StorageError } from '../storage.js'
import { failureOf } from './failures.js'
import { type Holder, holderOf, holdersIn, isGone, nameOf, STARTED_AT } from './holders.js'
import { Link, type LinkOptions } from './link.js'
import { type Statement, StatementError } from './pipeline.js'
import { statement } from './plan.js'
import { migrate } from './schema-version.js'
import { listUnlisted } from './unlisted.js'
import { checkWays, type DirectOptions, KEEP_ALIVE } from './ways.js'

/** A server that has just started has forgotten who holds what: whoever had it may come back so long. */
const GRACE_MS = 10_000
/** Whether who has it is gone. */
export const LOOK_AGAIN_MS = 250
const RETRY: Backoff = { firstMs: 100, longestMs: 5_000 }

const LOCK = `SELECT pg_try_advisory_lock(hashtextextended('session-gateway has ' || oid, 0)) AS mine FROM pg_namespace WHERE nspname = $1`
const UNLOCK = `SELECT pg_advisory_unlock(hashtextextended('session-gateway has ' || oid, 0)) FROM pg_namespace WHERE nspname = $1`
const LOCK_SHARED = LOCK.replace('try_advisory_lock', 'try_advisory_lock_shared')
const UNLOCK_SHARED = UNLOCK.replace('advisory_unlock', 'advisory_unlock_shared')
const NEIGHBOURS = `SELECT n, name, url, protocol, version, slots, config, to_json(profiles)::text AS profiles, draining, host, pid, started_at AS "startedAt",
    term < 0 AS "hasLeft", coalesce(until < clock_timestamp(), true) AS "isExpired",
    CASE WHEN isfinite(until) THEN extract(epoch FROM until - clock_timestamp())::double precision * 1000 END AS "leftMs",
    extract(epoch FROM clock_timestamp())::double precision * 1000 AS "serverMs",
    pg_postmaster_start_time() < clock_timestamp() - $1 * interval '1 millisecond' AS "isServerUp"
  FROM @members LEFT JOIN @leases USING (n) WHERE name IS NOT NULL ORDER BY n`
/** What several processes had is this one's. */
const ALONE = [
  ...['DELETE FROM @members', 'DELETE FROM @leases', 'DELETE FROM @takeovers'],
  ...['sessions', 'jobs', 'deliveries', 'idempotency_keys'].map(
    (table) => `UPDATE @${table} SET owner = NULL WHERE owner IS NOT NULL`,
  ),
]
const UPTIME = 'SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS ms'

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
  static async join(options: DirectOptions): Promise<Membership> {
    const link = await Link.open(options)
    try {
      await checkWays(link, options)
      await migrate(link.client, options.schema)
      await link.client.query(KEEP_ALIVE)
      await takeLock(link, options)
      await listUnlisted(link)
      const rows = await link.run([
        ...ALONE.map((sql) => statement(sql)),
        // a crash has ended the requests that had taken a key and had made nothing yet
        statement('DELETE FROM @idempotency_keys WHERE answer IS NULL AND made IS NULL'),
        statement(
          'INSERT INTO @members (host, pid, started_at, version) VALUES ($1, $2, $3, $4) RETURNING n',
          ...[hostname(), process.pid, STARTED_AT, VERSION],
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

  /** What is written may go to another server by now: the lock is taken there, too. */
  follow(): void {
    // where the server is the same, it has it
    if (!this.#isOver && !this.#link.isLost) this.#take().catch(() => this.#link.destroy())
  }

  #watch(): void {
    const link = this.#link
    link.unref()
    void link.lost.then(() => {
      if (!this.#isOver && this.#link === link) void this.#takeAgain()
    })
  }

  /** Whoever has the row may write, with or without the lock: it is taken again so that others see that somebody has it. */
  async #takeAgain(): Promise<void> {
    this.#link.destroy()
    for (let tries = 1; !this.#isOver && this.#link.isLost; tries++) {
      // it is not there yet
      await this.#take().catch(() => {})
      if (this.#link.isLost) await sleep(delayAfter(tries, RETRY), undefined, { ref: false })
    }
  }

  async #take(): Promise<void> {
    const link = await Link.open(this.#options)
    try {
      await link.client.query(KEEP_ALIVE)
      const [row] = (await link.client.query(LOCK, [this.#options.schema])).rows
      if (!row?.mine || this.#isOver) return await link.end()
      const before = this.#link
      this.#link = link
      this.#watch()
      before.destroy()
    } catch (error) {
      link.destroy()
      throw error
    }
  }
}

/** One of several processes, as the others see it. */
export interface Neighbour extends Omit<ClusterNode, 'profiles'> {
  /** A list as JSON; null: it is of a version that does not say. */
  profiles: string | null
  host: string
  pid: number
  startedAt: number
  hasLeft: boolean
  isExpired: boolean
  /** Of its lease; negative when that is over, null when it has none. */
  leftMs: number | null
  /** What the server's clock says. */
  serverMs: number
  /** The server has been there for longer than a lease: who could renew one has had the time. */
  isServerUp: boolean
}

export const neighboursAsked = (leaseMs: number): Statement => statement(NEIGHBOURS, leaseMs)

/** @throws StorageError when another process has it */
export const takeLock = (link: Link, options: LinkOptions): Promise<void> => take(link, options, LOCK, UNLOCK)

/** As one of several. @throws StorageError when a single process has it */
export const takeSharedLock = (link: Link, options: LinkOptions): Promise<void> =>
  take(link, options, LOCK_SHARED, UNLOCK_SHARED)

/** Without waiting for anything, and whether there is one or not. */
export async function shareLock(link: Link, { schema }: LinkOptions): Promise<void> {
  await link.client.query(LOCK_SHARED, [schema])
}

async function take(link: Link, { schema, place }: LinkOptions, lock: string, unlock: string): Promise<void> {
  const isShared = lock === LOCK_SHARED
  for (;;) {
    const { rows } = await link.client.query(lock, [schema])
    const found = (await holdersIn(link.client, schema)).filter(({ name }) => !isShared || name === null)
    if (rows[0]?.mine !== true) throw held(place, schema, found.map(holderOf), isShared)
    const left = found.filter((holder) => !isGone(holder))
    const alive = left.filter(({ isAlive }) => isAlive)
    // one of several whose connection broke has its lease
    if (alive.length > 0) throw held(place, schema, alive.map(holderOf), isShared)
    if (left.every(({ name }) => name !== null)) return
    const uptime = await link.client.query(UPTIME)
    if (Number(uptime.rows[0].ms) > GRACE_MS) return
    await link.client.query(unlock, [schema])
    await sleep(LOOK_AGAIN_MS)
  }
}

function held(place: string, schema: string, holders: readonly Holder[], isShared: boolean): StorageError {
  const by = holders.length > 0 ? holders.map(nameOf).join('; ') : 'another process that is just starting or ending'
  const what = holders.length > 1 ? 'Stop them first' : 'Stop it first'
  const nodes = isShared
    ? ', or start it again as a node too (cluster)'
    : holders.some(({ name }) => name !== undefined)
      ? ', or start this one as a node too (cluster)'
      : ''
  return new StorageError(
    'STORAGE_HELD',
    `The schema ${schema} of ${place} is in use by ${by}. ${what}${nodes}, or give this gateway a schema of its own (storage.postgres.schema).`,
  )
}
