import type { SignInStore } from '../../console/store.js'
import type { ChannelStore } from '../../notifications/channels/store.js'
import type { NotificationStore } from '../../notifications/store.js'
import type { SessionStore } from '../../sessions/kept/store.js'
import type { UsageStore } from '../../usage/store.js'
import type { Call } from '../sql/call-queue.js'
import { Lifecycle } from '../sql/lifecycle.js'
import type { CallDatabase } from '../sql/operations.js'
import { storageParts } from '../sql/parts.js'
import type { GatewayStorage } from '../storage.js'
import { StorageError } from '../storage.js'
import { type HeldFile, holdFile } from './files.js'
import { backupSqlite, doctorSqlite, type SqliteReport } from './maintenance.js'
import { DatabaseThread } from './thread.js'

export interface SqliteStorageOptions {
  /** Of the database file; it and its directory are made when they are missing, for this account alone. */
  path: string
  /**
   * `full`: what was confirmed survives a power cut. `normal`: it survives a crash of the process, while a power cut may take the last
   * seconds. Default `full`.
   */
  synchronous?: 'full' | 'normal'
  /** Epoch milliseconds; default `Date.now`. */
  now?: () => number
}

/** Everything that a gateway keeps, in one SQLite database. */
export interface SqliteStorage extends GatewayStorage {
  readonly sessions: SessionStore
  readonly notifications: NotificationStore
  readonly channels: ChannelStore
  readonly signIns: SignInStore
  readonly usage: UsageStore
  /** Copies the database as it is now into a new file, for this account alone, while it is in use. Rejects when the file exists. */
  backup(file: string): Promise<void>
  /** Looks for damage, while it is in use; takes a while when there is much. */
  check(): Promise<SqliteReport>
}

/** For tests of this folder, and for benchmarks. */
export interface SqliteInternals {
  pragmas?: readonly string[]
  /** Of the thread's code. */
  worker?: URL
  /** Hears what each batch asks for as it goes to the database, which does it in one transaction. */
  onBatch?: (names: readonly Call[0][]) => void
}

/**
 * Keeps everything in one SQLite database, in a thread of its own. From `open` until `close` the process holds `<path>.lock`; a second
 * one is refused and told who has it. A database that is damaged, of something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: when the disk is full or fails,
 * the same call may succeed later.
 */
export const createSqliteStorage = (options: SqliteStorageOptions, internals: SqliteInternals = {}): SqliteStorage =>
  new Storage(options, internals)

class Storage implements SqliteStorage {
  readonly oneWrite = true
  readonly sessions
  readonly journal
  readonly profiles
  readonly queue
  readonly idempotency
  readonly outbox
  readonly notifications
  readonly channels
  readonly signIns
  readonly usage
  readonly #options: SqliteStorageOptions
  readonly #internals: SqliteInternals
  readonly #call: CallDatabase
  #thread: DatabaseThread | undefined
  #file: HeldFile | undefined
  readonly #lifecycle = new Lifecycle(
    () => this.#open(),
    () => this.#close(),
  )

  constructor(options: SqliteStorageOptions, internals: SqliteInternals) {
    this.#options = options
    this.#internals = internals
    const { now = Date.now } = options
    const call: CallDatabase = (name, ...args) =>
      this.#thread ? this.#thread.call(name, ...args) : Promise.reject(this.#notOpen())
    this.#call = call
    const parts = storageParts(call, now)
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
    if (this.#thread) this.#thread.atTurnsEnd(work)
    else queueMicrotask(work)
  }

  async probe(): Promise<void> {
    await this.#call('probe.write')
    await this.#call('probe.clear')
  }

  async backup(file: string): Promise<void> {
    await backupSqlite(this.#openFile(), file)
  }

  async check(): Promise<SqliteReport> {
    return doctorSqlite(this.#openFile())
  }

  async #open(): Promise<void> {
    const file = await holdFile(this.#options.path)
    try {
      const { synchronous = 'full' } = this.#options
      const { pragmas = [], worker, onBatch } = this.#internals
      this.#thread = await DatabaseThread.start({ path: file.path, synchronous, pragmas }, worker, onBatch)
      this.#file = file
    } catch (error) {
      await file.release()
      throw error
    }
  }

  async #close(): Promise<void> {
    const [thread, file] = [this.#thread, this.#file]
    this.#thread = undefined
    this.#file = undefined
    await thread?.close()
    await file?.release()
  }

  #openFile(): string {
    if (!this.#file) throw this.#notOpen()
    return this.#file.path
  }

  #notOpen(): StorageError {
    return new StorageError('STORAGE_CLOSED', `${this.#options.path} is not open.`)
  }
}
