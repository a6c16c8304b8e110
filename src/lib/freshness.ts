/**
 * Whether what this process has read is still what is kept, where several processes keep it: asked of the store before it is used, and read
 * again when another one has changed it.
 */
export class Freshness {
  readonly #version: () => number | Promise<number>
  readonly #load: () => Promise<unknown>
  #known: number | undefined
  #running: Promise<void> | undefined
  /** For all who came while one was running: its answer may be from before what they are to see. */
  #next: Promise<void> | undefined

  /** @param load reads all of it anew */
  constructor(version: () => number | Promise<number>, load: () => Promise<unknown>) {
    this.#version = version
    this.#load = load
  }

  /** Resolves when everything is read that was kept before the call. @throws what the store throws */
  check(): Promise<void> {
    if (!this.#running) return this.#run()
    this.#next ??= this.#running.then(
      () => this.#runNext(),
      () => this.#runNext(),
    )
    return this.#next
  }

  #runNext(): Promise<void> {
    this.#next = undefined
    return this.#run()
  }

  #run(): Promise<void> {
    const running = this.#compare().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }

  async #compare(): Promise<void> {
    const version = await this.#version()
    if (version === this.#known) return
    await this.#load()
    this.#known = version
  }
}
