import { signal } from '@preact/signals'
import type { InboxCount, NotificationItem, SessionNotification } from '../../../client/index.js'
import { client } from '../api.js'
import { type LastTold, withLast } from '../model/last-told.js'
import { LinkState } from './link.js'
import { NOBODY, noteEnd } from './me.js'

/** How much waits for a person. */
export const waiting = signal<InboxCount>({ permissions: 0, questions: 0 })

const linkState = new LinkState()
/** How the feed of all sessions stands: the console's one connection that is always there. */
export const feedLink = linkState.link

/** Resolves once the feed is there again, to true, or has ended. At once when it is not away. */
export const feedBack = (): Promise<boolean> =>
  new Promise((resolve) => {
    const off = feedLink.subscribe(({ state }) => {
      if (state === 'away') return
      resolve(state !== 'ended')
      queueMicrotask(() => off())
    })
  })

type Listener = (item: NotificationItem) => void
const listeners = new Set<Listener>()

/** Calls back with everything that the feed tells; at a gap, and after a reconnect, pages are to be read again. @returns a function that ends it */
export function onFeed(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The last thing that was told of each session. */
export const lastTold = signal<LastTold>(new Map())

function tell(notification: SessionNotification): void {
  lastTold.value = withLast(lastTold.value, notification)
}

let aborter: AbortController | undefined

export function stopFeed(): void {
  aborter?.abort()
  // whoever was in is not any more: a request may have met that before the feed did, which is then back with the next sign-in all the same
  if (aborter) linkState.onConnection({ state: 'ended', error: NOBODY })
  aborter = undefined
}

/** Follows the feed until it is stopped, or ended by the gateway. Once at a time. */
export async function startFeed(): Promise<void> {
  stopFeed()
  aborter = new AbortController()
  const { signal } = aborter
  const feed = client.notifications.watch({ signal })
  feed.onConnection((connection) => !signal.aborted && linkState.onConnection(connection))
  void recent(signal)
  try {
    for await (const item of feed) {
      if (item.type === 'inbox') waiting.value = item.inbox
      else if (item.type === 'gap') linkState.onGap()
      else tell(item.notification)
      for (const listener of listeners) listener(item)
    }
  } catch (error) {
    await noteEnd(error)
  }
}

/** What was told before the console was opened. */
async function recent(signal: AbortSignal): Promise<void> {
  try {
    for await (const page of client.notifications.list({ signal }).pages()) {
      for (const notification of page) tell(notification)
      return
    }
  } catch {
    // the list of sessions does without
  }
}
