/**
 * Work that is done once for all who ask for it at the same time: one run after the other, and whoever comes while one is under way is
 * given the next, since that one may have looked before they came.
 */
export class Anew {
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  /** For all who came while one was running. */
  #next: Promise<void> | undefined

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Resolves when a run is over that began after the call. @throws what that run throws */
  done(): Promise<void> {
    // one that is to come is not overtaken in the moment in which the one before it is over
    if (this.#next) return this.#next
    if (!this.#running) return this.#run()
    this.#next = this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        return this.#run()
      })
    return this.#next
  }

  #run(): Promise<void> {
    const running = this.#work().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}
