import { feedLink, onFeed } from './feed.js'

/**
 * Calls back whenever what a screen has read from pages may have changed: something went into the inbox or left it, a gap, the connection
 * is back. Never twice at a time, and no more often than every `gapMs`.
 */
export class Rereading {
  readonly #read: () => Promise<void>
  #isBusy = false
  #isDue = false
  #isOver = false

  readonly #gapMs: number

  constructor(read: () => Promise<void>, { gapMs = 300 } = {}) {
    this.#read = read
    this.#gapMs = gapMs
  }

  /** Now, or when the one that is in progress has ended. */
  again(): void {
    if (this.#isOver) return
    if (this.#isBusy) {
      this.#isDue = true
      return
    }
    this.#isBusy = true
    void this.#read().finally(() => {
      setTimeout(() => {
        this.#isBusy = false
        if (!this.#isDue) return
        this.#isDue = false
        this.again()
      }, this.#gapMs)
    })
  }

  /** @returns a function that ends it */
  follow(): () => void {
    const offFeed = onFeed(() => this.again())
    let before = feedLink.value.state
    const offLink = feedLink.subscribe(({ state }) => {
      if (state === 'back' && before !== 'back') this.again()
      before = state
    })
    this.again()
    return () => {
      this.#isOver = true
      offFeed()
      offLink()
    }
  }
}
