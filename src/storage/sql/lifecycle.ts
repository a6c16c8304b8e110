/** Opens and closes a storage, one after the other, however often either is asked for. */
export class Lifecycle {
  readonly #open: () => Promise<void>
  readonly #close: () => Promise<void>
  #opened: Promise<void> | undefined
  #closed: Promise<void> = Promise.resolve()

  constructor(open: () => Promise<void>, close: () => Promise<void>) {
    this.#open = open
    this.#close = close
  }

  open(): Promise<void> {
    if (!this.#opened) {
      const opened = this.#closed.then(this.#open)
      this.#opened = opened
      // What went wrong may be gone at the next try.
      opened.catch(() => {
        if (this.#opened === opened) this.#opened = undefined
      })
    }
    return this.#opened
  }

  close(): Promise<void> {
    const opened = this.#opened
    if (opened) {
      this.#opened = undefined
      this.#closed = opened.then(this.#close, () => {})
    }
    return this.#closed
  }
}
