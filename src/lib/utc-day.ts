export const DAY_MS = 24 * 60 * 60 * 1000

/** Days since the epoch. */
export const dayNumber = (at: number): number => Math.floor(at / DAY_MS)

/** The day that was asked for last, which is almost always today. */
let last = { number: Number.NaN, name: '' }

/** The day of a moment, in UTC: `YYYY-MM-DD`. */
export function utcDay(at: number): string {
  const number = dayNumber(at)
  if (number !== last.number) last = { number, name: new Date(at).toISOString().slice(0, 10) }
  return last.name
}
