import { toError } from '../../errors.js'
import type { Timer } from '../../lib/clock.js'
import { SOON_MS } from './ended-soon.js'
import type { SleepParts, Waking } from './waking.js'

/** After so many processes that it may have ended a session goes on with few others. */
const WITH_FEW = 2
/** After so many it goes on alone. */
const ALONE = 3
/** After so many it goes on by itself no more. */
const MOST = 4

const HELD = `${MOST} processes in a row ended soon after they had gone on with this turn, so none does by itself any more`
const WHAT_TO_DO = 'interrupt the session to end the turn, or remove it'
const ONCE_MORE = 'once it is mended why, an orderly restart of the gateway tries again'

/**
 * Goes on, at a start, with what an earlier process left in the middle of a turn. A turn that ends the process would do so at each start, and
 * everything else there would end with it. So those that were gone on with soon before two processes ended go on after all others, few at
 * a time; of those the ones that a third process ended with go on last, each alone; and one that a fourth ended with is held. What only ended
 * with it is cleared of that once the process has lived for a while.
 */
export class Starts {
  readonly #parts: SleepParts
  readonly #waking: Waking
  readonly #withFew = new Set<string>()
  readonly #alone = new Set<string>()
  readonly #held = new Set<string>()
  readonly #heldDetail: string
  #timer: Timer | undefined
  #isClosed = false

  constructor(parts: SleepParts, waking: Waking) {
    this.#parts = parts
    this.#waking = waking
    this.#heldDetail = `${HELD}: ${WHAT_TO_DO}${parts.sharing ? '' : `; ${ONCE_MORE}`}.`
  }

  /** @param endedSoon how many processes in a row ended soon after they had gone on with it */
  goOn(id: string, endedSoon = 0): void {
    if (endedSoon < WITH_FEW) void this.#wake(id)
    else if (endedSoon >= MOST) void this.#hold(id)
    else {
      const others = endedSoon < ALONE ? this.#withFew : this.#alone
      others.add(id)
      this.#nextLater()
    }
  }

  #wake(id: string): Promise<void> {
    this.#waking.expect(id, true)
    return this.#waking.wake(id)
  }

  #nextLater(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#parts.clock.after(SOON_MS, () => {
      this.#timer = undefined
      void this.#next()
    })
  }

  async #next(): Promise<void> {
    const { logger, mailbox } = this.#parts
    const ids = this.#takeNext()
    if (ids.length === 0) return
    logger.warn(
      { sessionIds: ids },
      'processes ended soon after they had gone on with these: they go on without others',
    )
    await Promise.all(
      ids.map(async (id) => {
        await this.#wake(id)
        // however long its engine takes to start: the next ones are to have no part in what this one does
        await mailbox.run(id, async () => {})
      }),
    )
    this.#nextLater()
  }

  /** So many that the next start has about as many to tell apart as this one has turns of them. */
  #takeNext(): string[] {
    const left = this.#stillParked(this.#withFew)
    const next =
      left.length > 0 ? left.slice(0, Math.ceil(Math.sqrt(left.length))) : this.#stillParked(this.#alone).slice(0, 1)
    for (const id of next) {
      this.#withFew.delete(id)
      this.#alone.delete(id)
    }
    return next
  }

  /** Some go on already, since somebody said something to them, or are gone, or another node's to go on with. */
  #stillParked(ids: Set<string>): string[] {
    const { table } = this.#parts
    for (const id of ids) if (!table.isParked(id) || table.get(id)?.away !== undefined) ids.delete(id)
    return [...ids]
  }

  /** Never rejects. */
  async #hold(id: string): Promise<void> {
    const { load, logger, mailbox } = this.#parts
    this.#held.add(id)
    logger.error({ sessionId: id }, this.#heldDetail)
    try {
      await mailbox.run(id, async () => {
        const session = await load(id)
        if (session?.parked) session.leaveDesk.showParkedAgain(this.#heldDetail)
      })
    } catch (error) {
      logger.error({ sessionId: id, err: toError(error) }, 'a session that is held cannot say why')
    }
  }

  /**
   * The process is shut down: who does that may have mended why others ended, so what is held is tried once more, alone. A node that is
   * drained leaves it to another one, which has not been mended.
   */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    if (this.#parts.sharing) return
    for (const id of this.#held) {
      const session = this.#parts.table.resident(id)
      if (!session?.parked || session.midTurn?.endedSoon !== MOST) continue
      session.midTurn.endedSoon = ALONE
      session.touch()
    }
  }
}
