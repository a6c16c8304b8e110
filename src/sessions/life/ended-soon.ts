import type { Clock, Timer } from '../../lib/clock.js'
import type { Keeping } from '../kept/keeping.js'
import type { Session } from '../session.js'

/** What ends the process mostly does so by then. */
export const SOON_MS = 20_000

/** Counts of each turn that a start goes on with how many processes in a row ended soon after they had gone on with it. */
export class EndedSoon {
  readonly #clock: Clock
  readonly #keeping: Keeping
  readonly #timers = new Set<Timer>()

  constructor({ clock, keeping }: { clock: Clock; keeping: Keeping }) {
    this.#clock = clock
    this.#keeping = keeping
  }

  /**
   * Counts this process before an engine starts: known after a crash, however soon that comes.
   * @throws SG_ERR_STORE_UNAVAILABLE; it is not counted then
   */
  async count(session: Session): Promise<void> {
    const { midTurn } = session
    // a journal of what is asleep keeps no count
    if (!midTurn || !this.#keeping.hasAll) return
    midTurn.endedSoon = (midTurn.endedSoon ?? 0) + 1
    session.touch()
    try {
      await session.durable()
    } catch (error) {
      this.takeBack(session)
      throw error
    }
  }

  /** The engine did not start, and the process goes on without it. */
  takeBack(session: Session): void {
    const { midTurn } = session
    if (midTurn?.endedSoon === undefined) return
    midTurn.endedSoon--
    if (midTurn.endedSoon === 0) delete midTurn.endedSoon
    session.touch()
  }

  /** An engine goes on with it, whoever asked for that: once the process has lived with it for a while nothing is counted any more. */
  clearLater(session: Session): void {
    const { midTurn } = session
    if (midTurn?.endedSoon === undefined) return
    const timer = this.#clock.after(SOON_MS, () => {
      this.#timers.delete(timer)
      if (session.midTurn !== midTurn) return
      delete midTurn.endedSoon
      session.touch()
    })
    this.#timers.add(timer)
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
  }
}
