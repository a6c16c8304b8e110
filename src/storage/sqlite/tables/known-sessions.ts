import type { Database } from '../driver.js'
import { onRollback } from '../transaction.js'

/** Where a session stands in the database. */
export interface KnownSession {
  key: number
  reservedSeq: number
  /** Of its newest event; 0 when it has none. */
  lastSeq: number
  /** Whether its row says that it sleeps. */
  sleeps: boolean
  /** Ids of the executions that are found by it; undefined: nobody has looked. */
  executions?: ReadonlySet<string> | undefined
}

const MAX_KNOWN = 4_096

/** Where the sessions stand that are written right now, each read once: nobody else writes to the database. */
export class KnownSessions {
  readonly #find
  readonly #known = new Map<string, KnownSession>()

  constructor(db: Database) {
    this.#find = db.prepare(
      `SELECT key, reserved_seq AS reservedSeq, asleep IS NOT NULL AS sleeps,
         coalesce((SELECT max(seq) FROM events WHERE session = key), 0) AS lastSeq
       FROM sessions WHERE id = ?`,
    )
    onRollback(db, () => this.#known.clear())
  }

  /** Without a look into the database. */
  recent(id: string): KnownSession | undefined {
    return this.#known.get(id)
  }

  get(id: string): KnownSession | undefined {
    const known = this.recent(id)
    if (known) return known
    const found = this.#find.get(id)
    return found && { ...found, sleeps: found.sleeps === 1 }
  }

  /** A session stands there now, in the transaction that is under way. */
  set(id: string, session: KnownSession): void {
    this.#known.set(id, session)
    if (this.#known.size > MAX_KNOWN) this.forget(this.#known.keys().next().value!)
  }

  forget(id: string): void {
    this.#known.delete(id)
  }
}
