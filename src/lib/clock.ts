/** The longest delay that `setTimeout` takes; beyond it Node fires at once. */
export const MAX_DELAY_MS = 2 ** 31 - 1
/** A timer that is late by more was held up with the whole process: stopped, starved, or at work on something else. */
const HELD_UP_MS = 100

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
 * A one-shot timer for delays of any length, `Infinity` included (it never fires). It does not keep the process alive. When the process was
 * held up, what came in meanwhile is heard first: whoever waits for an answer that is there does not give up.
 * @param delayMs milliseconds; negative and NaN count as 0
 */
export function startLongTimer(delayMs: number, run: () => void): Timer {
  let remainingMs = delayMs > 0 ? delayMs : 0
  let dueAt = 0
  let handle: NodeJS.Timeout | undefined
  let heard: NodeJS.Immediate | undefined
  const fire = () => {
    if (performance.now() - dueAt > HELD_UP_MS) heard = setImmediate(run)
    else run()
  }
  const arm = () => {
    const stepMs = Math.min(remainingMs, MAX_DELAY_MS)
    remainingMs -= stepMs
    dueAt = performance.now() + stepMs
    handle = setTimeout(remainingMs > 0 ? arm : fire, stepMs)
    handle.unref()
  }
  if (remainingMs !== Infinity) arm()
  return {
    cancel() {
      clearTimeout(handle)
      clearImmediate(heard)
    },
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
  after: startLongTimer,
}
