import type { SignInStore } from '../../console/store.js'
import type { ChannelStore } from '../../notifications/channels/store.js'
import type { NotificationStore } from '../../notifications/store.js'
import type { SessionStore } from '../../sessions/kept/store.js'
import type { UsageStore } from '../../usage/store.js'
import { Lifecycle } from '../sql/lifecycle.js'
import type { CallDatabase } from '../sql/operations.js'
import { type StorageParts, storageParts } from '../sql/parts.js'
import type { GatewayStorage } from '../storage.js'
import { StorageError } from '../storage.js'
import { PostgresDatabase } from './database.js'
import { placeOf } from './failures.js'
import type { LinkOptions } from './link.js'
import { Membership } from './membership.js'
import { Sweeper } from './sweeper.js'

export interface PostgresStorageOptions {
  /** `postgres://user:password@host:port/database`, with `?sslmode=…` where the connection is to be encrypted. */
  url: string
  /** Of this gateway alone; made when it is missing and the user may do that. Default `session_gateway`. */
  schema?: string
  /**
   * The same database without a pooler, for the one connection that lasts. Needed where `url` leads to a pooler that shares connections
   * between transactions. Default: `url`.
   */
  listenUrl?: string
  /** Whether statements are prepared by name, as poolers of that kind may not allow. Default true. */
  namedStatements?: boolean
  /** Epoch milliseconds; default `Date.now`. */
  now?: () => number
}

/** Everything that a gateway keeps, in one schema of a PostgreSQL database. */
export interface PostgresStorage extends GatewayStorage {
  readonly sessions: SessionStore
  readonly notifications: NotificationStore
  readonly channels: ChannelStore
  readonly signIns: SignInStore
  readonly usage: UsageStore
}

const SCHEMA = 'session_gateway'

/**
 * Keeps everything in one schema of a PostgreSQL database, over two connections. From `open` until `close` the schema is this process's:
 * a second one is refused and told who has it, and one that was taken for dead writes nothing any more (`STORAGE_FENCED`). A schema of
 * something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: while the database is away, at
 * once; the same call may succeed later. What was under way when the connection broke waits until the database says whether it was done.
 */
export const createPostgresStorage = (options: PostgresStorageOptions): PostgresStorage => new Storage(options)

export const linkOptions = ({ url, schema = SCHEMA, namedStatements = true }: PostgresStorageOptions): LinkOptions => ({
  ...{ url, place: placeOf(url), schema, namedStatements },
})

/** The connection that nothing may come between. */
export const directOptions = (options: PostgresStorageOptions): LinkOptions => ({
  ...linkOptions({ ...options, url: options.listenUrl ?? options.url }),
  namedStatements: false,
})

class Storage implements PostgresStorage {
  readonly oneWrite = true
  readonly sessions: StorageParts['sessions']
  readonly journal: StorageParts['journal']
  readonly profiles: StorageParts['profiles']
  readonly queue: StorageParts['queue']
  readonly idempotency: StorageParts['idempotency']
  readonly outbox: StorageParts['outbox']
  readonly notifications: StorageParts['notifications']
  readonly channels: StorageParts['channels']
  readonly signIns: StorageParts['signIns']
  readonly usage: StorageParts['usage']
  readonly #options: PostgresStorageOptions
  readonly #call: CallDatabase
  readonly #sweeper: Sweeper
  #database: PostgresDatabase | undefined
  #membership: Membership | undefined
  readonly #lifecycle = new Lifecycle(
    () => this.#open(),
    () => this.#close(),
  )

  constructor(options: PostgresStorageOptions) {
    this.#options = options
    this.#call = (name, ...args) => {
      if (!this.#database)
        return Promise.reject(new StorageError('STORAGE_CLOSED', `${placeOf(options.url)} is not open.`))
      const answer = this.#database.call(name, ...args)
      if (name === 'journal.remove') answer.then(this.#sweeper.start, () => {})
      return answer
    }
    this.#sweeper = new Sweeper(this.#call)
    const parts = storageParts(this.#call, options.now ?? Date.now)
    this.sessions = parts.sessions
    this.journal = parts.journal
    this.profiles = parts.profiles
    this.queue = parts.queue
    this.idempotency = parts.idempotency
    this.outbox = parts.outbox
    this.notifications = parts.notifications
    this.channels = parts.channels
    this.signIns = parts.signIns
    this.usage = parts.usage
  }

  open(): Promise<void> {
    return this.#lifecycle.open()
  }

  close(): Promise<void> {
    return this.#lifecycle.close()
  }

  readonly atTurnsEnd = (work: () => void): void => {
    if (this.#database) this.#database.atTurnsEnd(work)
    else queueMicrotask(work)
  }

  async probe(): Promise<void> {
    await this.#call('probe.write')
    await this.#call('probe.clear')
  }

  async #open(): Promise<void> {
    const membership = await Membership.join(directOptions(this.#options))
    try {
      this.#database = await PostgresDatabase.open(linkOptions(this.#options), membership.n)
      this.#membership = membership
    } catch (error) {
      await membership.leave()
      throw error
    }
    this.#sweeper.start()
  }

  async #close(): Promise<void> {
    const [database, membership] = [this.#database, this.#membership]
    this.#sweeper.stop()
    this.#database = undefined
    this.#membership = undefined
    await database?.close()
    await membership?.leave()
  }
}
