import { computed, signal } from '@preact/signals'
import type { NotificationItem, Pages, SessionInfo } from '../../../client/index.js'
import { client } from '../api.js'
import { type Listed, withEarlier, withNewest, without, withTold } from '../model/session-list.js'
import { feedLink, onFeed } from './feed.js'

const PAGE = 100
/** What the feed does not tell of, such as a session that another client starts, is seen so often. */
const REFRESH_MS = 15_000
/** As many are kept beside those that were asked for: where a queue is at work new ones come for as long as somebody looks. */
const MAX_KEPT = 1_000

const known = signal<Listed>(new Map())
/** All that are loaded, newest first. */
export const sessions = computed(() => [...known.value.values()])
/** `hasMore`: earlier ones can be loaded. */
export const listing = signal<{ isLoaded: boolean; hasMore: boolean; error?: unknown }>({
  isLoaded: false,
  hasMore: false,
})

let pages: Pages<SessionInfo> | undefined
/** The ids on the newest page, as it was read last. */
let newest: ReadonlySet<string> = new Set()
/** The ids on the page that `pages` goes on after. */
let reached: ReadonlySet<string> = new Set()

/** More than so many begin anew with the newest page, and the rest is there to be loaded. */
let most = MAX_KEPT

/** What was told while a page is on its way, which may be older; undefined: it is gone. */
let meanwhile: Map<string, SessionInfo | undefined> | undefined
let isDue = false

export function keepSession(session: SessionInfo): void {
  const before = known.value
  known.value = withTold(before, session)
  if (known.value !== before) meanwhile?.set(session.id, session)
}

export function forgetSession(id: string): void {
  known.value = without(known.value, id)
  meanwhile?.set(id, undefined)
}

/** Reads the newest page; what is older and loaded stays. One at a time: whoever comes meanwhile has it read again after that. */
export async function refreshSessions(): Promise<void> {
  if (meanwhile) {
    isDue = true
    return
  }
  meanwhile = new Map()
  try {
    await readNewest(meanwhile)
  } catch (error) {
    listing.value = { ...listing.value, error }
  }
  meanwhile = undefined
  if (!isDue) return
  isDue = false
  await refreshSessions()
}

async function readNewest(told: ReadonlyMap<string, SessionInfo | undefined>): Promise<void> {
  const fresh = client.sessions.list({ limit: PAGE }).pages()[Symbol.asyncIterator]()
  const { value } = await fresh.next()
  const page: SessionInfo[] = value ?? []
  const isWhole = fresh.isAtEnd
  let all = withNewest(known.value, page, isWhole)
  const isFull = all.size > most
  if (isFull) all = withNewest(new Map(), page, isWhole)
  for (const [id, session] of told) all = session ? withTold(all, session) : without(all, id)
  known.value = all
  // more than a page of new ones lie between it and what was read before: what is earlier begins after it once more
  const isApart = !isWhole && !page.some(({ id }) => newest.has(id))
  newest = idsOf(page)
  if (!pages || isApart || isFull) {
    pages = fresh
    reached = newest
    if (isFull) most = MAX_KEPT
    listing.value = { isLoaded: true, hasMore: !isWhole }
  } else listing.value = { isLoaded: true, hasMore: listing.value.hasMore }
}

const idsOf = (page: readonly SessionInfo[]): ReadonlySet<string> => new Set(page.map(({ id }) => id))

export async function loadEarlier(): Promise<void> {
  const from = pages
  try {
    const next = await from?.next()
    // what was read meanwhile begins anew
    if (from !== pages) return
    if (!next || next.done) {
      listing.value = { isLoaded: true, hasMore: false }
      return
    }
    known.value = withEarlier(known.value, next.value, reached)
    reached = idsOf(next.value)
    most += next.value.length
    listing.value = { isLoaded: true, hasMore: !from?.isAtEnd }
  } catch (error) {
    listing.value = { ...listing.value, error }
  }
}

function onItem(item: NotificationItem): void {
  if (item.type === 'gap') void refreshSessions()
  else if (item.type === 'notification') keepSession(item.notification.session)
  // also where nobody looks: a window in the background reads nothing by itself
  if (known.value.size > most) void refreshSessions()
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
    const { state } = feedLink.value
    // what was missed while it was away is said for as long as somebody stays
    if (!document.hidden && (state === 'live' || state === 'back')) void refreshSessions()
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
