import { toError } from '../errors.js'

/**
 * Runs what a host wrote, which may be async where its type says that nothing comes back; nobody else would hear of such a promise, and
 * one that rejects ends the process.
 * @param failed told of what it throws, or rejects with
 */
export function caught(run: () => unknown, failed: (error: Error) => void): void {
  try {
    const result = run()
    if (result instanceof Promise) result.catch((thrown) => failed(toError(thrown)))
  } catch (thrown) {
    failed(toError(thrown))
  }
}
