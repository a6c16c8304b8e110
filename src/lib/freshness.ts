import { Anew } from './anew.js'

/**
 * Whether what this process has read is still what is kept, where several processes keep it: asked of the store before it is used, and read
 * again when another one has changed it.
 */
export class Freshness {
  readonly #version: () => number | Promise<number>
  readonly #load: () => Promise<unknown>
  readonly #comparing = new Anew(() => this.#compare())
  #known: number | undefined

  /** @param load reads all of it anew */
  constructor(version: () => number | Promise<number>, load: () => Promise<unknown>) {
    this.#version = version
    this.#load = load
  }

  /** Resolves when everything is read that was kept before the call. @throws what the store throws */
  check(): Promise<void> {
    return this.#comparing.done()
  }

  async #compare(): Promise<void> {
    const version = await this.#version()
    if (version === this.#known) return
    await this.#load()
    this.#known = version
  }
}
