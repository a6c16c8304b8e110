/**
 * What of each session was refused since the storage did not answer, and is not taken back yet: it may still be written, and nobody goes
 * on from it.
 */
export class Overdue {
  readonly #ofSession = new Map<string, Set<readonly string[]>>()

  /** @param keys of the news that is among it @returns called once it is taken back */
  add(id: string, keys: readonly string[]): () => void {
    const all = this.#ofSession.get(id) ?? new Set()
    // one of its own, whatever is refused twice
    const one = [...keys]
    this.#ofSession.set(id, all.add(one))
    return () => {
      all.delete(one)
      if (all.size === 0 && this.#ofSession.get(id) === all) this.#ofSession.delete(id)
    }
  }

  /** @param key of news; absent: anything */
  has(id: string, key?: string): boolean {
    const all = this.#ofSession.get(id)
    return all !== undefined && (key === undefined || [...all].some((keys) => keys.includes(key)))
  }

  /** The session is another node's. */
  forget(id: string): void {
    this.#ofSession.delete(id)
  }
}
