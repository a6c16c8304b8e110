import { untilAborted } from '../../lib/aborted.js'
import { deferred } from '../../lib/deferred.js'

/** By place, whether the first start there came about. */
const firstAt = new Map<string, Promise<boolean>>()

/**
 * Waits for the first start of an agent at a place, which is not to have another one beside it.
 * @returns tells whether it came about, where this is the first one: if not, one of those that wait is
 * @throws the signal's reason when it aborts before
 */
export async function firstStart(
  place: string,
  signal: AbortSignal,
): Promise<((cameAbout: boolean) => void) | undefined> {
  signal.throwIfAborted()
  for (let first = firstAt.get(place); first; first = firstAt.get(place)) {
    if (await untilAborted(first, signal)) return undefined
    if (firstAt.get(place) === first) firstAt.delete(place)
  }
  const { promise, resolve } = deferred<boolean>()
  firstAt.set(place, promise)
  return resolve
}
