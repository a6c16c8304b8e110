/** What it returns; undefined: it threw. */
export function tried<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}
