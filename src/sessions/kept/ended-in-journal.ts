import { toError } from '../../errors.js'
import type { Executions } from '../../executions/executions.js'
import type { Clock, Timer } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import type { Patience } from '../../lib/patience.js'
import { isUnreadable } from '../../storage/storage.js'
import type { SessionEntry, SessionTable } from '../session-table.js'
import type { Sharing } from '../sharing.js'
import { type EndedSessions, isTerminal, type JournaledWhole, type ListedQuery } from './journal.js'
import type { Keeping } from './keeping.js'

export interface EndedInJournalParts {
  clock: Clock
  logger: Logger
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  keeping: Keeping
  executions: Executions
  table: SessionTable
  /** Absent: one process has all sessions. */
  sharing?: Sharing | undefined
  /** Somebody asks for one that has not ended and is not in the table, where several processes have sessions. */
  onMissed(left: JournaledWhole): Promise<void>
  /** How long a session that has ended stays listed; `undefined`: until DELETE. */
  sessionRetentionMs: number | undefined
  /** Lists a session that the table does not have. */
  enter(left: JournaledWhole): void
  /** Removes one that is in the table. @throws SG_ERR_STORE_UNAVAILABLE */
  forget(id: string): Promise<void>
}

/** Sessions that are looked at, or removed, at once. */
const BATCH = 200
/** Until those are looked at again that could not be removed, or that somebody has looked at. */
const AGAIN_MS = 30_000
/** Until it is looked for those that nodes have left which are gone. */
const LOOK_MS = 5 * 60_000

/**
 * Sessions that have ended and that nobody asks for: the journal has them, and the table does not. Whoever asks for one by its id has it
 * entered there for a while.
 */
export class EndedInJournal {
  /** What the journal gives of them. */
  readonly journal: EndedSessions
  readonly #parts: EndedInJournalParts
  readonly #lookUps = new Map<string, Promise<SessionEntry | undefined>>()
  /** Sessions that are on their way out, and were never said to be there. */
  readonly #refused = new Set<string>()
  #count = 0
  #sweep: { at: number; timer: Timer } | undefined
  #stopped = false

  constructor(journal: EndedSessions, parts: EndedInJournalParts) {
    this.journal = journal
    this.#parts = parts
    const { table, sharing, executions } = parts
    table.onDropped = ({ id, endedAt }) => {
      // whoever has it next finds them by the journal
      if (sharing) executions.forget(id)
      else this.#count++
      this.#expect(endedAt)
    }
  }

  /** How many are in the journal alone; 0 where several processes end sessions, of which none counts all. */
  get count(): number {
    return this.#count
  }

  /** Whether there may be some in the journal alone. */
  get hasSome(): boolean {
    return this.#parts.sharing !== undefined || this.#count > 0
  }

  /**
   * Reads what is to be known of those of an earlier process.
   * @returns what is to be done once the others are in the table
   * @throws what the journal throws
   */
  async open(): Promise<() => void> {
    const { executions, table, sharing, clock } = this.#parts
    if (sharing)
      return () => {
        if (this.#parts.sessionRetentionMs !== undefined) this.#sweepAt(clock.now())
      }
    for (const { id, executionIds } of await this.journal.endedExecutions())
      for (const executionId of executionIds) executions.remember(id, executionId)
    const { count, lastOrder } = await this.journal.endedTotals()
    this.#count = count
    const [first] = await this.journal.endedFirst(1)
    return () => {
      table.goOnAfter(lastOrder)
      if (first) this.#expect(first.endedAt)
    }
  }

  /** The entry of one that has ended, which the table has from now on. @throws SG_ERR_STORE_UNAVAILABLE */
  async find(id: string, patience?: Patience): Promise<SessionEntry | undefined> {
    if (!this.hasSome) return undefined
    const known = this.#lookUps.get(id)
    if (known) return known
    const lookUp = this.#lookUp(id, patience).finally(() => this.#lookUps.delete(id))
    this.#lookUps.set(id, lookUp)
    return lookUp
  }

  async #lookUp(id: string, patience: Patience | undefined): Promise<SessionEntry | undefined> {
    const { keeping, table, sharing, onMissed } = this.#parts
    const left = await keeping.get(id, patience).catch((error) => {
      // reported; it stays in the journal, as one does that cannot be read at the start
      if (isUnreadable(error.cause)) return undefined
      throw error
    })
    const entry = table.get(id)
    if (entry || !left || this.#refused.has(id)) return entry
    if (!isTerminal(left.state.info)) {
      if (sharing) await onMissed(left)
      return table.get(id)
    }
    if (left.news?.some(({ type }) => type === 'removal')) return undefined
    this.enter(left)
    if (!sharing) this.#count--
    return table.get(id)
  }

  /** Lists one in the table, until nobody looks at it any more. */
  enter(left: JournaledWhole): void {
    const { table, enter } = this.#parts
    enter(left)
    table.unloadLater(left.id)
  }

  /** Some of them; where several processes have sessions, of all. @throws SG_ERR_STORE_UNAVAILABLE */
  async read(query: ListedQuery): ReturnType<EndedSessions['ended']> {
    const { sessions, next } = await this.#parts.keeping.readListed(query, this.#parts.sharing !== undefined)
    return { sessions: sessions.filter(({ id }) => !this.#refused.has(id)), next }
  }

  /** Hides one that was refused until it is gone from the journal, too. */
  hide(id: string): void {
    this.#refused.add(id)
  }

  unhide(id: string): void {
    this.#refused.delete(id)
  }

  stop(): void {
    this.#stopped = true
    this.#sweep?.timer.cancel()
  }

  // ── those whose time is over ──────────────────────────────────────────────────────────────────────────────────────────────

  /** One that ended then is in the journal alone. */
  #expect(endedAt: number): void {
    const { sessionRetentionMs } = this.#parts
    if (sessionRetentionMs !== undefined) this.#sweepAt(endedAt + sessionRetentionMs)
  }

  #sweepAt(at: number, by: 'after' | 'retryAfter' = 'after'): void {
    const { clock, retryAfter } = this.#parts
    if (this.#stopped || (this.#sweep && this.#sweep.at <= at)) return
    this.#sweep?.timer.cancel()
    const run = () => {
      this.#sweep = undefined
      void this.#removeOld()
    }
    const delayMs = at - clock.now()
    const timer = by === 'after' ? clock.after(delayMs, run) : retryAfter(delayMs, run)
    this.#sweep = { at, timer }
  }

  async #removeOld(): Promise<void> {
    const { clock, logger, table, sessionRetentionMs = 0, forget } = this.#parts
    const isOld = ({ endedAt }: { endedAt: number }) => endedAt + sessionRetentionMs <= clock.now()
    try {
      for (;;) {
        const first = await this.journal.endedFirst(BATCH)
        // one that is in the table goes from there
        const old = first.filter((one) => isOld(one) && !table.get(one.id))
        const found = await Promise.all(old.map(async ({ id }) => (await this.#isMine(id)) && this.find(id)))
        const entries = found.filter((entry) => entry !== undefined && entry !== false)
        await Promise.all(entries.map(({ id }) => forget(id)))
        if (entries.length > 0 && first.length === BATCH) continue
        const next = first.find((one) => !isOld(one))
        if (this.#parts.sharing) this.#sweepAt(clock.now() + LOOK_MS)
        if (next) this.#expect(next.endedAt)
        else if (first.length > entries.length) this.#sweepAt(clock.now() + AGAIN_MS)
        return
      }
    } catch (error) {
      logger.error({ err: toError(error) }, 'sessions that have ended could not be removed; it is tried again')
      this.#sweepAt(clock.now() + AGAIN_MS, 'retryAfter')
    }
  }

  /** Those of nodes that are gone are one node's to remove. */
  async #isMine(id: string): Promise<boolean> {
    const { sharing } = this.#parts
    return !sharing || (await sharing.storage.claim(id))?.owner?.n === sharing.storage.n
  }
}
