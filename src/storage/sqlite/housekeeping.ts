import type { Call } from '../sql/call-queue.js'
import type { Operations } from '../sql/operations.js'
import { shrinks } from './connection.js'
import type { Database, Statement } from './driver.js'
import type { InUse } from './in-use.js'
import { inTransaction } from './transaction.js'

/** Events of removed sessions that go with a write, and in a pause. */
const SWEPT_ALONG = 50
const SWEPT_IN_A_PAUSE = 200
/** Nobody has asked for anything for so long: a pause to sweep in, and one to give pages back in. */
const PAUSE_MS = 10
const LONG_PAUSE_MS = 1_000
/** Pages that stay for what comes next, 4 MiB of them, and that are given back at once. */
const KEPT_PAGES = 1_024
const PAGES_AT_ONCE = 64
/** Calls after which there may be more that is not used any more. */
const CLEARING: ReadonlySet<Call[0]> = new Set([
  'journal.remove',
  'jobs.prune',
  'jobs.remove',
  'notifications.prune',
  'outbox.forget',
  'outbox.prune',
])

/**
 * Takes away what removed sessions leave, and gives the file system back what is free then. Events are swept in the transactions of
 * writes, a few at a time, so that it costs no commit, and in pauses; pages are given back in long pauses only. What goes wrong is tried
 * again after the next removal or start.
 */
export class Housekeeping {
  readonly #db: Database
  readonly #inUse: InUse
  readonly #sweep: Operations['journal.sweep']
  readonly #changes: Statement
  readonly #free: Statement
  /** Whether pages can be given back at all. */
  readonly #shrinkable: boolean
  #sweeps = true
  #shrinks = true
  #timer: NodeJS.Timeout | undefined

  constructor(db: Database, operations: Operations, inUse: InUse) {
    this.#db = db
    this.#inUse = inUse
    this.#sweep = operations['journal.sweep']
    this.#changes = db.prepare('SELECT total_changes() AS n')
    this.#free = db.prepare('PRAGMA freelist_count')
    this.#shrinkable = shrinks(db)
    this.onAnswered()
  }

  /** @returns what is to be done after these calls in their transaction; undefined: nothing */
  along(calls: readonly Call[]): (() => void) | undefined {
    clearTimeout(this.#timer)
    if (calls.some(([name]) => CLEARING.has(name))) {
      this.#sweeps = true
      this.#shrinks = true
    }
    if (!this.#sweeps) return undefined
    const before = this.#changes.get().n
    return () => {
      // what only reads stays without a commit
      if (this.#changes.get().n > before) this.#sweeps = this.#sweep(SWEPT_ALONG)
    }
  }

  /** The calls are answered, and nothing else is asked for at the moment. */
  onAnswered(): void {
    this.#wait(this.#sweeps ? PAUSE_MS : LONG_PAUSE_MS)
  }

  #wait(ms: number): void {
    if (this.#sweeps || (this.#shrinks && this.#shrinkable)) this.#timer = setTimeout(() => this.#onPause(), ms)
  }

  #onPause(): void {
    this.#inUse.begin()
    try {
      if (!this.#sweeps) this.#shrinks = this.#shrink()
      else this.#sweeps = inTransaction(this.#db, () => this.#sweep(SWEPT_IN_A_PAUSE))
    } catch {
      this.#sweeps = false
      this.#shrinks = false
    } finally {
      this.#inUse.end()
    }
    this.#wait(PAUSE_MS)
  }

  /** @returns whether there may be more to give back */
  #shrink(): boolean {
    const spare = this.#free.get().freelist_count - KEPT_PAGES
    if (spare > 0) this.#db.exec(`PRAGMA incremental_vacuum(${Math.min(spare, PAGES_AT_ONCE)})`)
    // the file is cut when the log is copied into it
    if (spare <= PAGES_AT_ONCE) this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    return spare > PAGES_AT_ONCE
  }
}
