import { computed, signal } from '@preact/signals'

/** The time here, epoch milliseconds: it moves once a second, and not while nobody looks. */
export const here = signal(Date.now())
/** How much later it is at the gateway, whose clock all that it tells is of: this machine's may be wrong by hours. */
const ahead = signal(0)

/** The time as the gateway has it, as relative times show it. */
export const now = computed(() => here.value + ahead.value)

/** The same at this moment, also where nobody looks. */
export const gatewayNow = (): number => Date.now() + ahead.peek()

/** Clocks that are less apart count as the same: a date is of whole seconds, and was on its way. */
const SAME_MS = 5_000
/** An answer that took longer says nothing of now: the machine may have slept. */
const MAX_TAKEN_MS = 10_000

/** @param date of an answer's header · @param askedAt when it was asked for, epoch milliseconds */
export function noteDate(date: string | null, askedAt: number): void {
  const at = Date.parse(date ?? '')
  const arrived = Date.now()
  if (Number.isNaN(at) || arrived - askedAt > MAX_TAKEN_MS) return
  const found = Math.abs(at - arrived) < SAME_MS ? 0 : at - arrived
  if (found === 0 || Math.abs(found - ahead.peek()) >= SAME_MS) ahead.value = found
}

const tick = (): void => {
  if (!document.hidden) here.value = Date.now()
}
setInterval(tick, 1000)
document.addEventListener('visibilitychange', tick)
