import { computed, signal } from '@preact/signals'
import { aheadBy } from '../model/ahead.js'

/** The time here, epoch milliseconds: it moves once a second, and not while nobody looks. */
export const here = signal(Date.now())
/** How much later it is at the gateway, whose clock all that it tells is of: this machine's may be wrong by hours. */
const ahead = signal(0)

/** The time as the gateway has it, as relative times show it. */
export const now = computed(() => here.value + ahead.value)

/** The same at this moment, also where nobody looks. */
export const gatewayNow = (): number => Date.now() + ahead.peek()

/** @param askedAt when what is answered was asked for, epoch milliseconds of here */
export function noteDate(headers: Headers, askedAt: number): void {
  ahead.value = aheadBy(ahead.peek(), { headers, askedAt, arrivedAt: Date.now() })
}

const tick = (): void => {
  if (!document.hidden) here.value = Date.now()
}
setInterval(tick, 1000)
document.addEventListener('visibilitychange', tick)
