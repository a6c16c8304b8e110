import { toError } from '../../errors.js'
import type { Clock, Timer } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import type { SessionTable } from '../session-table.js'
import type { Sharing } from '../sharing.js'
import type { DueSleeper, SessionsAtRest } from './journal.js'

export interface DueParts {
  clock: Clock
  logger: Logger
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  table: SessionTable
  /** Absent: one process has all sessions. */
  sharing?: Sharing | undefined
  /** Whether another process is to do what has to be done with one. Absent: one process has all sessions. */
  isElsewhere?: ((id: string) => Promise<boolean>) | undefined
  /** How long a session that has ended stays listed; `undefined`: until DELETE. */
  sessionRetentionMs: number | undefined
  /** Removes one that is in the table. @throws SG_ERR_STORE_UNAVAILABLE */
  forget(id: string): Promise<void>
}

/** Takes one into the table. @returns undefined when it is none of those at rest any more */
type Find = (id: string) => Promise<{ readonly id: string } | undefined>

/** Those that are asked for, or removed, at once. */
const BATCH = 200
/** Until it is looked again where that failed, where others may have left some, or for what could not be removed yet. */
const AGAIN_MS = 30_000
/** Until it is looked for those that have ended and that nodes have left which are gone. */
const LOOK_MS = 5 * 60_000

/** Timers do not notice that the clock was set forward or that the machine slept; so the time is looked at this often. */
const CLOCK_MS = 60_000

/** The next look at what is due: at the earliest of the times that were asked for. */
class NextLook {
  readonly #parts: DueParts
  readonly #look: () => void
  #next: { at: number; timer: Timer } | undefined
  stopped = false

  constructor(parts: DueParts, look: () => void) {
    this.#parts = parts
    this.#look = look
  }

  at(at: number, by: 'after' | 'retryAfter' = 'after'): void {
    const { clock, retryAfter } = this.#parts
    if (this.stopped || (this.#next && this.#next.at <= at)) return
    this.#next?.timer.cancel()
    const leftMs = at - clock.now()
    if (by === 'after') this.#arm(at, clock.steady() + leftMs)
    else this.#next = { at, timer: retryAfter(leftMs, () => this.#go()) }
  }

  /** @param steadyAt when as much time has passed, whatever the clock says: where it was set back that comes first */
  #arm(at: number, steadyAt: number): void {
    const { clock } = this.#parts
    const left = () => Math.min(at - clock.now(), steadyAt - clock.steady())
    const run = () => (left() > 0 ? this.#arm(at, steadyAt) : this.#go())
    this.#next = { at, timer: clock.after(Math.min(left(), CLOCK_MS), run) }
  }

  #go(): void {
    this.#next = undefined
    this.#look()
  }

  stop(): void {
    this.stopped = true
    this.#next?.timer.cancel()
  }
}

/** Sees to it that sleeping sessions which only the journal has are in memory when the first deadline of what they wait for comes. */
export class DueSleepers {
  readonly #journal: SessionsAtRest
  readonly #parts: DueParts
  readonly #find: Find
  readonly #next: NextLook
  #looking = false
  /** Somebody asked meanwhile. */
  #isBehind = false

  constructor(journal: SessionsAtRest, parts: DueParts, find: Find) {
    this.#journal = journal
    this.#parts = parts
    this.#find = find
    this.#next = new NextLook(parts, () => this.look())
  }

  /** One is in the journal alone that wakes then. @param wakesAt epoch milliseconds; undefined: never by itself */
  expect(wakesAt: number | undefined): void {
    const { table } = this.#parts
    if (wakesAt === undefined) return
    if (table.isNear(wakesAt)) this.look()
    else this.#next.at(table.whenNear(wakesAt))
  }

  /** There may be some that nobody here knows of. */
  look(): void {
    void this.#look()
  }

  stop(): void {
    this.#next.stop()
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    if (this.#looking) this.#isBehind = true
    if (this.#looking || this.#next.stopped) return
    this.#looking = true
    try {
      do {
        this.#isBehind = false
        await this.#takeNear()
      } while (this.#isBehind && !this.#next.stopped)
    } catch (error) {
      const { clock, logger } = this.#parts
      logger.error({ err: toError(error) }, 'sessions whose time has come could not be looked for; it is tried again')
      this.#next.at(clock.now() + AGAIN_MS, 'retryAfter')
    } finally {
      this.#looking = false
    }
  }

  /** Those whose time is near, and then the first of the others is waited for. */
  async #takeNear(): Promise<void> {
    const { clock, table, isElsewhere } = this.#parts
    for (let after: DueSleeper | undefined; !this.#next.stopped; ) {
      const page = await this.#journal.dueFirst(BATCH, after)
      const far = page.find(({ wakesAt }) => !table.isNear(wakesAt))
      const near = page.filter((one) => table.isNear(one.wakesAt) && !table.get(one.id))
      await Promise.all(near.map(async ({ id }) => (await isElsewhere?.(id)) || this.#find(id)))
      // of nodes that are gone by then nobody here is told
      if (isElsewhere) this.#next.at(clock.now() + AGAIN_MS)
      if (far) return this.expect(far.wakesAt)
      if (page.length < BATCH) return
      after = page.at(-1)
    }
  }
}

/** Removes sessions that have ended and that only the journal has when nobody is to find them any more. */
export class DueRemovals {
  readonly #journal: SessionsAtRest
  readonly #parts: DueParts
  readonly #find: Find
  readonly #next: NextLook

  constructor(journal: SessionsAtRest, parts: DueParts, find: Find) {
    this.#journal = journal
    this.#parts = parts
    this.#find = find
    this.#next = new NextLook(parts, () => void this.#removeOld())
  }

  /** One that ended then is in the journal alone. */
  expect(endedAt: number): void {
    const { sessionRetentionMs } = this.#parts
    if (sessionRetentionMs !== undefined) this.#next.at(endedAt + sessionRetentionMs)
  }

  /** There may be some that nobody here knows of. */
  look(): void {
    const { sessionRetentionMs, clock } = this.#parts
    if (sessionRetentionMs !== undefined) this.#next.at(clock.now())
  }

  stop(): void {
    this.#next.stop()
  }

  /** Never rejects. */
  async #removeOld(): Promise<void> {
    const { clock, logger, table, sharing, sessionRetentionMs = 0, forget } = this.#parts
    const isOld = ({ endedAt }: { endedAt: number }) => endedAt + sessionRetentionMs <= clock.now()
    try {
      for (;;) {
        const first = await this.#journal.endedFirst(BATCH)
        // one that is in the table goes from there
        const old = first.filter((one) => isOld(one) && !table.get(one.id))
        const found = await Promise.all(old.map(async ({ id }) => (await this.#isMine(id)) && this.#find(id)))
        const entries = found.filter((entry) => entry !== undefined && entry !== false)
        await Promise.all(entries.map(({ id }) => forget(id)))
        if (entries.length > 0 && first.length === BATCH) continue
        const next = first.find((one) => !isOld(one))
        if (sharing) this.#next.at(clock.now() + LOOK_MS)
        if (next) this.expect(next.endedAt)
        else if (first.length > entries.length) this.#next.at(clock.now() + AGAIN_MS)
        return
      }
    } catch (error) {
      logger.error({ err: toError(error) }, 'sessions that have ended could not be removed; it is tried again')
      this.#next.at(clock.now() + AGAIN_MS, 'retryAfter')
    }
  }

  /** Those of nodes that are gone are one node's to remove. */
  async #isMine(id: string): Promise<boolean> {
    const { sharing } = this.#parts
    return !sharing || (await sharing.storage.claim(id))?.owner?.n === sharing.storage.n
  }
}
