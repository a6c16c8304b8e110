import type { SessionNotification } from '../../../client/index.js'

export type LastTold = ReadonlyMap<string, SessionNotification>

/** As many sessions are known by it. */
const MAX_KEPT = 1_000

/** The last thing that was told of each session, newest wins; of those that were told of longest ago nothing is known any more. Pure. */
export function withLast(known: LastTold, notification: SessionNotification, most = MAX_KEPT): LastTold {
  const { sessionId, ts } = notification
  const before = known.get(sessionId)
  if (before && before.ts > ts) return known
  const all = new Map(known)
  all.delete(sessionId)
  all.set(sessionId, notification)
  if (all.size > most) all.delete(all.keys().next().value!)
  return all
}
