import type { SessionInfo, SessionStatus } from '../../../client/index.js'

export type Filter = 'all' | 'waiting' | 'active' | 'over'

const OF: Record<Exclude<Filter, 'all' | 'waiting'>, ReadonlySet<SessionStatus>> = {
  active: new Set(['starting', 'running', 'awaiting_approval', 'parked']),
  over: new Set(['failed', 'closed']),
}

/** Whether a session waits for a person. */
export const isWaiting = ({ status, pendingPermissions }: SessionInfo): boolean =>
  status === 'awaiting_approval' || pendingPermissions > 0

/**
 * How many sessions wait for a person; undefined where one that is not loaded may be among them.
 * @param requests how many of them wait in all sessions together
 */
export function waitingCount(
  sessions: readonly SessionInfo[],
  { hasMore, requests }: { hasMore: boolean; requests: number },
): number | undefined {
  const waits = sessions.filter(isWaiting)
  const known = waits.reduce((sum, { pendingPermissions }) => sum + pendingPermissions, 0)
  return hasMore && known !== requests ? undefined : waits.length
}

/**
 * The sessions that fit, in their order.
 * @param search words, all of which are somewhere in its title, last line, directory, profile or id
 */
export function fitting(
  sessions: readonly SessionInfo[],
  { filter, profile, search }: { filter: Filter; profile: string; search: string },
  lineOf: (session: SessionInfo) => string,
): SessionInfo[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  return sessions.filter((session) => {
    if (profile && session.profile !== profile) return false
    if (filter === 'waiting' ? !isWaiting(session) : filter !== 'all' && !OF[filter].has(session.status)) return false
    const text = [session.title, lineOf(session), session.cwd, session.profile, session.id].join('\n').toLowerCase()
    return words.every((word) => text.includes(word))
  })
}
