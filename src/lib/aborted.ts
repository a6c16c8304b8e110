/** Runs something once the signal aborts, at once when it has. @returns forgets it */
export function onceAborted(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) run()
  else signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}

/** Resolves when the signal aborts, at once when it has. */
export const whenAborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => onceAborted(signal, () => resolve(undefined)))

/** The promise, or the signal's reason as soon as it aborts; a late result is dropped. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onceAborted(signal, () => reject(signal.reason))
    promise.then(resolve, reject).finally(forget)
  })
}
