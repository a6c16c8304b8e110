/** What has come and has not been read: one reader, who waits when there is nothing. */
export class Inbox<T> {
  #items: T[] = []
  #wake: (() => void) | undefined
  #onTaken: (() => void) | undefined
  #over: { error?: unknown } | undefined

  get size(): number {
    return this.#items.length
  }

  push(item: T): void {
    if (this.#over) return
    this.#items.push(item)
    this.#wake?.()
  }

  /** Nothing more comes; what is there can still be read. */
  end(over: { error?: unknown } = {}): void {
    this.#over ??= over
    this.#wake?.()
    this.#onTaken?.()
  }

  /** Everything that is there, or the next that comes; undefined at the end. Rejects at an end that is an error. */
  async take(): Promise<T[] | undefined> {
    while (this.#items.length === 0) {
      if (this.#over) {
        if (this.#over.error !== undefined) throw this.#over.error
        return undefined
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const items = this.#items
    this.#items = []
    this.#onTaken?.()
    return items
  }

  /** Resolves when everything was taken, or nothing more is wanted. */
  async emptied(): Promise<void> {
    while (this.#items.length > 0 && !this.#over)
      await new Promise<void>((resolve) => {
        this.#onTaken = resolve
      })
  }
}
