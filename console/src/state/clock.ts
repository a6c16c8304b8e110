import { signal } from '@preact/signals'

/** The time, epoch milliseconds, as relative times show it: it moves once a second, and not while nobody looks. */
export const now = signal(Date.now())

const tick = (): void => {
  if (!document.hidden) now.value = Date.now()
}
setInterval(tick, 1000)
document.addEventListener('visibilitychange', tick)
