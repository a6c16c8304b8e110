import { untilAborted } from './aborted.js'

/** Holds up whoever asks whether to go on. */
export class Hold {
  #over: Promise<void> | undefined
  #lift = () => {}

  /** Present while it holds; resolves when that is over. */
  get over(): Promise<void> | undefined {
    return this.#over
  }

  put(): void {
    this.#over ??= new Promise<void>((resolve) => {
      this.#lift = resolve
    })
  }

  lift(): void {
    this.#over = undefined
    this.#lift()
  }

  /** Resolves when nothing holds, or the signal says that nobody waits. */
  async passed(signal?: AbortSignal): Promise<void> {
    while (this.#over && !signal?.aborted)
      await (signal ? untilAborted(this.#over, signal).catch(() => {}) : this.#over)
  }
}
