import { type Clock, systemClock } from './clock.js'

/**
 * Waits for some work, but not longer than `limitMs`: then comes what `onLate` returns, or throws; by default nothing comes. The work itself
 * goes on, and is told nothing.
 */
export async function within<T, L = undefined>(
  limitMs: number,
  work: T | Promise<T>,
  { clock = systemClock, onLate }: { clock?: Pick<Clock, 'after'>; onLate?: () => L } = {},
): Promise<T | L> {
  let cancel = () => {}
  const late = new Promise<void>((resolve) => {
    const timer = clock.after(limitMs, resolve, 'always')
    cancel = () => timer.cancel()
  })
  try {
    return await Promise.race([work, late.then(() => onLate?.() as L)])
  } finally {
    cancel()
  }
}
