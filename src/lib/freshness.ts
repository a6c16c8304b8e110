import { Anew } from './anew.js'

interface Versioned {
  version?(): number | Promise<number>
}

/** A store of which a copy is held in memory. */
export interface CopiedStore<Store extends Versioned> {
  store: Store
  /** Whether other processes change the store, too. */
  shared?: boolean | undefined
  /** Other processes are to look for what was changed; resolves when they have. */
  tellOthers?: (() => Promise<void>) | undefined
}

/** @param load reads all of it anew @returns undefined: nobody else changes it */
export const freshnessOf = ({ store, shared }: CopiedStore<Versioned>, load: () => Promise<unknown>) =>
  shared && store.version ? new Freshness(() => store.version!(), load) : undefined

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
