/** Resolves when the signal aborts, at once when it has. */
export const whenAborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((settle) => {
    if (signal.aborted) settle(undefined)
    else signal.addEventListener('abort', () => settle(undefined), { once: true })
  })

/** The promise, or the signal's reason as soon as it aborts; a late result is dropped. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
