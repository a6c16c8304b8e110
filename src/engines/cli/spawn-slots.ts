import { availableParallelism } from 'node:os'
import { untilAborted } from '../../lib/aborted.js'
import { deferred } from '../../lib/deferred.js'

/** The end of the first start at each place where there was one, whoever counted its slots. */
const firstAt = new Map<string, Promise<void>>()

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
   * @param firstAloneAt where the first start is not to have another one beside it
   * @returns gives it back; a second call does nothing
   * @throws the signal's reason when it aborts first
   */
  async take(signal: AbortSignal, firstAloneAt?: string): Promise<() => void> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free--
    else await this.#turn(signal)
    const over = deferred()
    let held = true
    const free = () => {
      if (!held) return
      held = false
      over.resolve()
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
    if (firstAloneAt === undefined) return free
    const first = firstAt.get(firstAloneAt)
    if (!first) firstAt.set(firstAloneAt, over.promise)
    else
      await untilAborted(first, signal).catch((reason) => {
        free()
        throw reason
      })
    return free
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
