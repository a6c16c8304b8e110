import { computed, signal } from '@preact/signals'
import type { NotificationItem, SessionInfo } from '../../../client/index.js'
import { client } from '../api.js'
import { feedLink, onFeed } from './feed.js'

const PAGE = 100
/** What the feed does not tell of, such as a session that another client starts, is seen so often. */
const REFRESH_MS = 15_000

const known = signal<ReadonlyMap<string, SessionInfo>>(new Map())
/** All that are loaded, newest first. */
export const sessions = computed(() => [...known.value.values()].sort((a, b) => b.createdAt - a.createdAt))
/** `hasMore`: earlier ones can be loaded. */
export const listing = signal<{ isLoaded: boolean; hasMore: boolean; error?: unknown }>({
  isLoaded: false,
  hasMore: false,
})

let pages: AsyncIterator<SessionInfo[]> | undefined

export function keepSession(session: SessionInfo): void {
  const other = known.value.get(session.id)
  if (other && other.lastSeq > session.lastSeq) return
  known.value = new Map(known.value).set(session.id, session)
}

export function forgetSession(id: string): void {
  const rest = new Map(known.value)
  rest.delete(id)
  known.value = rest
}

/** Reads the newest page; what is older and loaded stays. */
export async function refreshSessions(): Promise<void> {
  const fresh = client.sessions.list({ limit: PAGE }).pages()[Symbol.asyncIterator]()
  try {
    const { value, done } = await fresh.next()
    const page: SessionInfo[] = value ?? []
    const isWhole = page.length < PAGE
    const oldest = page.at(-1)?.createdAt ?? 0
    const listed = new Set(page.map(({ id }) => id))
    // one that was in the range of this page and is not on it is gone
    const rest = [...known.value].filter(([id, { createdAt }]) => !listed.has(id) && !isWhole && createdAt < oldest)
    known.value = new Map([...page.map((session) => [session.id, session] as const), ...rest])
    if (!pages) {
      pages = fresh
      listing.value = { isLoaded: true, hasMore: !done && !isWhole }
    } else listing.value = { isLoaded: true, hasMore: listing.value.hasMore }
  } catch (error) {
    listing.value = { ...listing.value, error }
  }
}

export async function loadEarlier(): Promise<void> {
  try {
    const next = await pages?.next()
    if (!next || next.done) {
      listing.value = { isLoaded: true, hasMore: false }
      return
    }
    const all = new Map(known.value)
    for (const session of next.value) all.set(session.id, session)
    known.value = all
    listing.value = { isLoaded: true, hasMore: next.value.length === PAGE }
  } catch (error) {
    listing.value = { ...listing.value, error }
  }
}

function onItem(item: NotificationItem): void {
  if (item.type === 'gap') void refreshSessions()
  else if (item.type === 'notification') keepSession(item.notification.session)
}

/** Keeps the list as it is at the gateway, for as long as somebody looks at it. @returns a function that ends it */
export function followSessions(): () => void {
  void refreshSessions()
  const offFeed = onFeed(onItem)
  let before = feedLink.value.state
  const offLink = feedLink.subscribe((link) => {
    if (link.state === 'back' && before !== 'back') void refreshSessions()
    before = link.state
  })
  const look = (): void => {
    if (!document.hidden && feedLink.value.state === 'live') void refreshSessions()
  }
  const timer = setInterval(look, REFRESH_MS)
  document.addEventListener('visibilitychange', look)
  return () => {
    offFeed()
    offLink()
    clearInterval(timer)
    document.removeEventListener('visibilitychange', look)
  }
}
