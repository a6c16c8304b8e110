import { CLOSE, type Close } from '../../schemas/close-codes.js'
import { PROTOCOL_VERSION } from '../../schemas/frames.js'
import type { NotificationsFrame } from '../../schemas/notifications.js'
import { type Principal, seeTheSame, visible } from '../principal.js'
import type { FeedFilter, NotificationFeed } from './feed.js'
import type { Inbox } from './inbox.js'
import { idIn } from './shared-places.js'
import type { KeptNotification } from './store.js'

/** A frame as text; one with an `id` is a place that a client can come back to. */
export interface FeedFrame {
  id?: string
  text: string
}

/** What a reader is written to. */
export interface FeedSink {
  /** Writes everything in one go, in order. @returns false when the client should be given time; `resume` is called after it */
  write(frames: readonly FeedFrame[]): boolean
  close(close: Close): void
}

/** Most bytes of notifications per client and turn. */
const BATCH_BYTES = 64 * 1024

/**
 * One client of the feed: a cursor and the pump that moves it, as a client of a session has. What was missed and what happens come by the
 * same loop: read on while the client takes bytes, stop when it does not. So a client that does not read costs nothing but its place.
 */
export class FeedReader {
  readonly #feed: NotificationFeed
  readonly #inbox: Inbox
  readonly #sink: FeedSink
  readonly #filter: FeedFilter
  readonly #unsubscribe: (() => void)[]
  #principal: Principal
  #cursor: number
  /** The head when it came, until it was reached and told. */
  #syncAt: number | undefined
  /** Whether the inbox has changed since it was told. */
  #inboxStale = false
  #blocked = false
  #reading = false
  #scheduled = false
  #closed = false

  /** @param place where it goes on, as `feed.placeAfter` says */
  constructor(
    { feed, inbox }: { feed: NotificationFeed; inbox: Inbox },
    sink: FeedSink,
    place: { number: number; id: string; truncated: boolean },
    { filter, principal }: { filter: FeedFilter; principal: Principal },
  ) {
    this.#feed = feed
    this.#inbox = inbox
    this.#sink = sink
    this.#filter = filter
    this.#principal = principal
    this.#cursor = place.number
    this.#syncAt = feed.headNumber
    this.#unsubscribe = [
      feed.listeners.on('notification', () => this.#schedule()),
      inbox.listeners.on('changed', ({ profile }) => this.#onInbox(profile)),
      inbox.listeners.on('elsewhere', ({ profile }) => this.#onInbox(profile)),
    ]
    const { id: after, truncated } = place
    const attached = { type: 'notifications_attached', protocolVersion: PROTOCOL_VERSION, after, truncated } as const
    this.#write([frame({ ...attached, inbox: inbox.count(principal) }, after)])
    this.#schedule()
  }

  /** The client is somebody else by now, who may see something else. */
  becomes(principal: Principal): void {
    const isOther = !seeTheSame(principal, this.#principal)
    this.#principal = principal
    if (!isOther) return
    this.#inboxStale = true
    this.#schedule()
  }

  /** The client has taken what was written. */
  resume(): void {
    this.#blocked = false
    this.#schedule()
  }

  close(close: Close): void {
    if (this.#closed) return
    this.detach()
    this.#sink.close(close)
  }

  /** The client is gone; nothing more is written. */
  detach(): void {
    this.#closed = true
    for (const end of this.#unsubscribe) end()
  }

  #onInbox(profile: string): void {
    if (!visible(this.#principal, profile)) return
    this.#inboxStale = true
    this.#schedule()
  }

  /** One look at the end of this turn, however much it brings. */
  #schedule(): void {
    if (this.#scheduled || this.#blocked || this.#reading || this.#closed) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#pump().catch(() => this.close(CLOSE.internal))
    })
  }

  async #pump(): Promise<void> {
    if (this.#closed || this.#blocked) return
    this.#reading = true
    const principal = this.#principal
    const { found, through, id } = await this.#feed.readOn(this.#cursor, this.#filter, principal, BATCH_BYTES)
    this.#reading = false
    if (this.#closed) return
    // it was read for who it was before
    if (principal !== this.#principal && !seeTheSame(principal, this.#principal)) return this.#schedule()
    this.#cursor = through
    const frames = found.map((kept) => this.#frameOf(kept))
    if (this.#syncAt !== undefined && this.#cursor >= this.#syncAt) {
      this.#syncAt = undefined
      frames.push(frame({ type: 'notifications_synced', after: id }, id))
    }
    const isAtHead = this.#cursor >= this.#feed.headNumber
    if (isAtHead && this.#inboxStale) {
      this.#inboxStale = false
      frames.push(frame({ type: 'inbox_changed', inbox: this.#inbox.count(this.#principal) }))
    }
    if (frames.length > 0) this.#write(frames)
    if (!isAtHead || this.#inboxStale) this.#schedule()
  }

  #frameOf(kept: KeptNotification): FeedFrame {
    return { id: idIn(kept), text: `{"type":"notification","notification":${kept.json}}` }
  }

  #write(frames: FeedFrame[]): void {
    this.#blocked = !this.#sink.write(frames)
  }
}

const frame = (what: NotificationsFrame, id?: string): FeedFrame => ({
  ...(id !== undefined && { id }),
  text: JSON.stringify(what),
})
