import { availableParallelism } from 'node:os'

/**
 * How many agents may start at the same time. Each takes a core for a second; eight that start together on two cores take eight
 * seconds each.
 */
export class SpawnSlots {
  #free: number
  readonly #waiting: (() => void)[] = []

  /** @param count default: one per core, and at least two */
  constructor(count = Math.max(2, availableParallelism())) {
    this.#free = count
  }

  /**
   * Waits for a slot.
   * @returns gives it back; a second call does nothing
   * @throws the signal's reason when it aborts first
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free--
    else await this.#turn(signal)
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((granted, refused) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(grant), 1)
        refused(signal.reason)
      }
      const grant = () => {
        signal.removeEventListener('abort', onAbort)
        granted()
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(grant)
    })
  }
}
