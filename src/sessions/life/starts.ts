import { toError } from '../../errors.js'
import type { Timer } from '../../lib/clock.js'
import type { SleepParts, Waking } from './waking.js'

/** After so many processes that it may have ended a session goes on alone. */
const AT_ONCE = 2
/** After so many it goes on by itself no more. */
const MOST = 4
/** What ends the process mostly does so by then. */
const SOON_MS = 20_000

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
  readonly #alone: string[] = []
  readonly #timers = new Set<Timer>()
  #isWaiting = false

  constructor(parts: SleepParts, waking: Waking) {
    this.#parts = parts
    this.#waking = waking
  }

  /** @param endedSoon how many processes in a row ended soon after they had gone on with it */
  goOn(id: string, endedSoon = 0): void {
    if (endedSoon < AT_ONCE) void this.#wake(id)
    else if (endedSoon >= MOST) void this.#hold(id)
    else {
      this.#alone.push(id)
      this.#nextLater()
    }
  }

  async #wake(id: string): Promise<void> {
    const { table } = this.#parts
    this.#waking.expect(id, true)
    await this.#waking.wake(id)
    this.#later(() => {
      const session = table.resident(id)
      if (session?.midTurn?.endedSoon === undefined) return
      delete session.midTurn.endedSoon
      session.touch()
    })
  }

  #nextLater(): void {
    if (this.#isWaiting) return
    this.#isWaiting = true
    this.#later(() => {
      this.#isWaiting = false
      this.#next()
    })
  }

  #next(): void {
    const { table, logger } = this.#parts
    // some go on already, since somebody said something to them, or are gone
    let id = this.#alone.shift()
    while (id !== undefined && !table.isParked(id)) id = this.#alone.shift()
    if (id === undefined) return
    logger.warn({ sessionId: id }, 'processes ended soon after they had gone on with this session: it goes on alone')
    void this.#wake(id).then(() => this.#nextLater())
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

  #later(work: () => void): void {
    const timer = this.#parts.clock.after(SOON_MS, () => {
      this.#timers.delete(timer)
      work()
    })
    this.#timers.add(timer)
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
  }
}
