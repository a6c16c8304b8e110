import { randomBytes } from 'node:crypto'
import type { ChannelStore } from '../channels/store.js'

/** Under which the key of answer links is kept. */
export const ANSWER_KEY = 'answer-links'

export const newAnswerKey = (): string => randomBytes(32).toString('base64url')

/**
 * The key that answer links are signed with. It is read again for each use, so that a rotation by another process holds from the next
 * use on; reads at the same time are one.
 */
export class AnswerKeys {
  readonly #store: ChannelStore
  #reading: Promise<Buffer> | undefined

  constructor(store: ChannelStore) {
    this.#store = store
  }

  /** @throws what the store throws */
  current(): Promise<Buffer> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<Buffer> {
    const kept = (await this.#store.key(ANSWER_KEY)) ?? (await this.#store.keyOnce(ANSWER_KEY, newAnswerKey()))
    return Buffer.from(kept, 'base64url')
  }
}
