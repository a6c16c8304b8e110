import type { SessionInfo } from '../../../client/index.js'

/** Sessions by their ids, in the order of the gateway: newest first, which is not always that of the times at which they were made. Pure. */
export type Listed = ReadonlyMap<string, SessionInfo>

/** What is told of one, newest wins. One that no page has told of is put where its time belongs. */
export function withTold(listed: Listed, session: SessionInfo): Listed {
  const known = listed.get(session.id)
  if (known && known.lastSeq > session.lastSeq) return listed
  if (known) return new Map(listed).set(session.id, session)
  const all = [...listed.values()]
  const at = all.findIndex(({ createdAt }) => createdAt <= session.createdAt)
  return mapOf(inserted(all, at === -1 ? all.length : at, [session]))
}

export function without(listed: Listed, id: string): Listed {
  const rest = new Map(listed)
  rest.delete(id)
  return rest
}

/**
 * With the newest page. One that was listed before the last of it, and is not on it, is gone; what comes after that stays.
 * @param isWhole whether nothing comes after it
 */
export function withNewest(listed: Listed, page: readonly SessionInfo[], isWhole: boolean): Listed {
  const last = page.at(-1)
  if (isWhole || !last) return mapOf(page)
  const ids = new Set(page.map(({ id }) => id))
  const known = [...listed.values()]
  const after = known.slice(known.findLastIndex(({ id }) => ids.has(id)) + 1)
  // where the last of the page was not listed, only the times tell on which side of it one was
  const rest = listed.has(last.id) ? after : after.filter(({ createdAt }) => createdAt <= last.createdAt)
  return mapOf([...page, ...rest])
}

/** With a page that comes after those of `before`. */
export function withEarlier(listed: Listed, page: readonly SessionInfo[], before: ReadonlySet<string>): Listed {
  const ids = new Set(page.map(({ id }) => id))
  const others = [...listed.values()].filter(({ id }) => !ids.has(id))
  const at = others.findLastIndex(({ id }) => before.has(id)) + 1 || others.length
  const newest = page.map((session) => {
    const known = listed.get(session.id)
    return known && known.lastSeq > session.lastSeq ? known : session
  })
  return mapOf(inserted(others, at, newest))
}

const inserted = <T>(all: readonly T[], at: number, more: readonly T[]): T[] => [
  ...all.slice(0, at),
  ...more,
  ...all.slice(at),
]
const mapOf = (sessions: readonly SessionInfo[]): Listed => new Map(sessions.map((session) => [session.id, session]))
