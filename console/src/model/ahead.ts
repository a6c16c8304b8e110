/** Clocks that are less apart count as the same: a date is of whole seconds. */
const SAME_MS = 5_000
/** An answer that took longer says nothing of now: the machine may have slept. */
const MAX_TAKEN_MS = 10_000

/** An answer: its headers, and when it was asked for and arrived, epoch milliseconds of here. */
interface Dated {
  headers: Pick<Headers, 'get'>
  askedAt: number
  arrivedAt: number
}

/**
 * How much later it is where an answer comes from. It was dated at some time between: what fits in there stays.
 * @param known what it was so far, milliseconds
 */
export function aheadBy(known: number, { headers, askedAt, arrivedAt }: Dated): number {
  const takenMs = arrivedAt - askedAt
  // what somebody has kept on the way is as old as they say
  const at = Date.parse(headers.get('date') ?? '') + (Number(headers.get('age')) || 0) * 1000
  // a clock that was set meanwhile says nothing either
  if (Number.isNaN(at) || takenMs < 0 || takenMs > MAX_TAKEN_MS) return known
  const fits = (ms: number): boolean => ms > at - arrivedAt - SAME_MS && ms < at - askedAt + SAME_MS
  return [0, known].find(fits) ?? at - arrivedAt
}
