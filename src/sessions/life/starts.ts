import { toError } from '../../errors.js'
import type { Timer } from '../../lib/clock.js'
import { SOON_MS } from './ended-soon.js'
import type { SleepParts, Waking } from './waking.js'

/** After so many processes that it may have ended a session goes on alone. */
const AT_ONCE = 2
/** After so many it goes on by itself no more. */
const MOST = 4

const HELD =
  `${MOST} processes in a row ended soon after they had gone on with this turn, so none does by itself any more: ` +
  'interrupt the session to end the turn, or remove it.'

/**
 * Goes on, at a start, with what an earlier process left in the middle of a turn. A turn that ends the process would do so at each start, and
 * everything else there would end with it. So one that was gone on with soon before several processes ended goes on after the others and
 * alone, and is held when that ends the process, too. What only ended with it is cleared of that once the process has lived for a while.
 */
export class Starts {
  readonly #parts: SleepParts
  readonly #waking: Waking
  readonly #alone = new Set<string>()
  #timer: Timer | undefined
  #isClosed = false

  constructor(parts: SleepParts, waking: Waking) {
    this.#parts = parts
    this.#waking = waking
  }

  /** @param endedSoon how many processes in a row ended soon after they had gone on with it */
  goOn(id: string, endedSoon = 0): void {
    if (endedSoon < AT_ONCE) void this.#wake(id)
    else if (endedSoon >= MOST) void this.#hold(id)
    else {
      this.#alone.add(id)
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
    const id = this.#takeNext()
    if (id === undefined) return
    logger.warn({ sessionId: id }, 'processes ended soon after they had gone on with this session: it goes on alone')
    await this.#wake(id)
    // however long its engine takes to start: the next one is to have no part in what this one does
    await mailbox.run(id, async () => {})
    this.#nextLater()
  }

  /** Some go on already, since somebody said something to them, or are gone. */
  #takeNext(): string | undefined {
    for (const id of this.#alone) {
      this.#alone.delete(id)
      if (this.#parts.table.isParked(id)) return id
    }
    return undefined
  }

  /** Never rejects. */
  async #hold(id: string): Promise<void> {
    const { load, logger, mailbox } = this.#parts
    logger.error({ sessionId: id }, HELD)
    try {
      await mailbox.run(id, async () => {
        const session = await load(id)
        if (session?.parked) session.engine.showParkedAgain(HELD)
      })
    } catch (error) {
      logger.error({ sessionId: id, err: toError(error) }, 'a session that is held cannot say why')
    }
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }
}
