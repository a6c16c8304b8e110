import { Hold } from '../../lib/hold.js'
import type { AgentProcess } from './process.js'

/** The pauses of a runner and of its agent's process, whichever is there first. */
export class Pausing {
  readonly #hold = new Hold()
  #process: AgentProcess | undefined

  /** Present while it is paused; resolves when it goes on. */
  get over(): Promise<void> | undefined {
    return this.#hold.over
  }

  /** Resolves when an agent may begin, or nobody waits for it. */
  passed(signal: AbortSignal): Promise<void> {
    return this.#hold.passed(signal)
  }

  /** Whose process it is. */
  of(process: AgentProcess): AgentProcess {
    this.#process = process
    if (this.over) process.pause()
    return process
  }

  pause(): void {
    this.#hold.put()
    this.#process?.pause()
  }

  resume(): void {
    this.#hold.lift()
    this.#process?.resume()
  }
}
