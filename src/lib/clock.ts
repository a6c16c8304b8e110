/** The longest delay that `setTimeout` takes; beyond it Node fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

export interface Timer {
  cancel(): void
}

/** Time as the domain sees it; tests pass a virtual one. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds since some moment, as timers count them: setting the clock does not change it. To measure how long something takes. */
  steady(): number
  /**
   * Calls `run` once after `delayMs`, however long that is; never before. Does not keep the process alive.
   * @param always also while the gateway may do nothing: it only gives up waiting
   */
  after(delayMs: number, run: () => void, always?: 'always'): Timer
}

/**
 * A one-shot timer for delays of any length, `Infinity` included (it never fires). It does not keep the process alive.
 * @param delayMs milliseconds; negative and NaN count as 0
 */
export function startLongTimer(delayMs: number, run: () => void): Timer {
  let remainingMs = delayMs > 0 ? delayMs : 0
  let handle: NodeJS.Timeout | undefined
  const arm = () => {
    const stepMs = Math.min(remainingMs, MAX_DELAY_MS)
    remainingMs -= stepMs
    handle = setTimeout(remainingMs > 0 ? arm : run, stepMs)
    handle.unref()
  }
  if (remainingMs !== Infinity) arm()
  return { cancel: () => clearTimeout(handle) }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
  after: startLongTimer,
}
