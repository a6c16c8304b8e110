import type { Tracked } from './tracked.js'

/** Which runs of this process take a slot: one that is parked takes none, and one that is over takes its own until its engine is gone. */
export class Slots {
  /** A slot became free. */
  readonly #onSlot: () => void
  /** Ended runs whose engine is not gone yet: they still take their slots. */
  #closing = 0
  #parked = 0
  /** Over, their engines gone, and that is being written: their slots are others'. */
  readonly #freed = new Set<Tracked>()

  constructor(onSlot: () => void) {
    this.#onSlot = onSlot
  }

  /** @param running how many attempts are not over, as far as that is told */
  taken(running: number): number {
    return running - this.#parked - this.#freed.size + this.#closing
  }

  park(tracked: Tracked, parked: boolean): void {
    if (tracked.parked === parked) return
    tracked.parked = parked
    this.#parked += parked ? 1 : -1
    if (parked) this.#onSlot()
  }

  /** Gives the slot of an attempt away whose end is being written. */
  free(tracked: Tracked): void {
    this.#freed.add(tracked)
    this.#onSlot()
  }

  /** The job is over, its engine may not be. */
  onOver(tracked: Tracked): void {
    if (this.#freed.delete(tracked)) return
    this.#closing++
    void tracked.run.closed.then(() => {
      this.#closing--
      this.#onSlot()
    })
  }

  /** Resolves when the ends are stored whose slots were given away already. */
  async stored(): Promise<void> {
    for (const { stored } of this.#freed) await stored
  }
}
