import { feedLink, onFeed } from './feed.js'

/** Calls back whenever what a screen has read may have changed. Never twice at a time, and no more often than every `gapMs`. */
export class Rereading {
  readonly #read: (signal: AbortSignal) => Promise<void>
  readonly #aborter = new AbortController()
  #isBusy = false
  #isDue = false

  readonly #gapMs: number

  /** @param read its signal is aborted once nobody wants to know */
  constructor(read: (signal: AbortSignal) => Promise<void>, { gapMs = 300 } = {}) {
    this.#read = read
    this.#gapMs = gapMs
  }

  /** Now, or when the one that is in progress has ended. */
  again(): void {
    if (this.#aborter.signal.aborted) return
    if (this.#isBusy) {
      this.#isDue = true
      return
    }
    this.#isBusy = true
    void this.#read(this.#aborter.signal).finally(() => {
      setTimeout(() => {
        this.#isBusy = false
        if (!this.#isDue) return
        this.#isDue = false
        this.again()
      }, this.#gapMs)
    })
  }

  /** What the feed tells of: something went into the inbox or left it, a gap, the connection is back. @returns a function that ends it */
  follow(): () => void {
    return this.#until(onFeed(() => this.again()))
  }

  /** What the feed does not tell of: somebody comes back to the window, having changed it in another perhaps. @returns a function that ends it */
  followLooks(): () => void {
    const look = (): void => {
      // of a gateway that is away nothing is read
      if (!document.hidden && feedLink.value.state !== 'away') this.again()
    }
    document.addEventListener('visibilitychange', look)
    addEventListener('focus', look)
    return this.#until(() => {
      document.removeEventListener('visibilitychange', look)
      removeEventListener('focus', look)
    })
  }

  /** Now, and when the connection is back. */
  #until(off: () => void): () => void {
    let before = feedLink.value.state
    const offLink = feedLink.subscribe(({ state }) => {
      if (state === 'back' && before !== 'back') this.again()
      before = state
    })
    this.again()
    return () => {
      this.#aborter.abort()
      off()
      offLink()
    }
  }
}
