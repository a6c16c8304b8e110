import type { Clock } from './clock.js'

/** So long, but no longer than half of what is left until `endsAt`, as `Clock.steady` counts: something is still to follow. */
export const graceUntil = (endsAt: number, graceMs: number, clock: Pick<Clock, 'steady'>): number =>
  Math.min(graceMs, Math.max(0, endsAt - clock.steady()) / 2)
