import type { ListNotificationsQuery, NotificationType, SessionNotification } from '../../schemas/notifications.js'
import { GatewayError, invalidField, toError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { newId } from '../lib/new-id.js'
import { MAX_PAGE, MAX_PAGE_BYTES, type Page } from '../lib/paging.js'
import { readInTime } from '../lib/patience.js'
import { type Principal, profilesAsked } from '../principal.js'
import { Numbering } from './numbering.js'
import { isIn, pageOf } from './range.js'
import { idIn, SharedPlaces } from './shared-places.js'
import type { KeptNotification, NotificationRange, NotificationStore } from './store.js'

/** How long notifications are kept. */
export interface NotificationRetention {
  /** Default 10,000. */
  maxCount: number
  /** Default 7 days. */
  maxAgeMs: number
}

export const DEFAULT_NOTIFICATION_RETENTION: NotificationRetention = {
  maxCount: 10_000,
  maxAgeMs: 7 * 24 * 60 * 60 * 1000,
}

export interface FeedOptions {
  store: NotificationStore
  /** Whether what the store keeps rides along in the writes of the sessions' journal. */
  ridesAlong: boolean
  retention: NotificationRetention
  /** Which of several processes this is, where they share the store. Absent: there is one. */
  node?: (() => number) | undefined
  /** No notification from before that time can be read any more: what is kept about them elsewhere goes. */
  forgetBefore: (time: number) => Promise<void>
  /** Others are to look for what was kept. */
  tellOthers?: (() => void) | undefined
  clock: Clock
  logger: Logger
}

/** What a reader of the feed wants to hear of. */
export interface FeedFilter {
  types?: readonly NotificationType[] | undefined
  profile?: string | undefined
}

export interface FeedEvents extends Record<string, unknown> {
  /** One more can be read. */
  notification: KeptNotification
}

/** So that ids rise as text, too. */
const DIGITS = 12
const ID = /^([\w-]{1,64}):(\d{12,16})$/
export const isNotificationId = (text: string): boolean => ID.test(text)
/** The newest ones are kept in memory for those who follow: as many, of so many characters. */
const RECENT = 1_000
const RECENT_CHARS = 4 * 1024 * 1024
/** Beyond `maxCount`, before the oldest are forgotten. */
const SLACK = 100
/** What is too old is forgotten as often, while there is anything. */
const SWEEP_MS = 60 * 60 * 1000
/** No more often, however soon it is too old: what cannot be forgotten is not tried without a pause. */
const SOONEST_SWEEP_MS = 1_000
/** A notification may be older than one before it by what the clocks of nodes differ. */
const MAX_SKEW_MS = 60_000

/** A notification that has got its place, and is to be written down. */
export interface Placed {
  notification: SessionNotification
  kept: KeptNotification
}

/** All notifications of all sessions, each at its place: they are read from a place on, and followed, and nobody misses one. */
export class NotificationFeed {
  /** Whether what the store keeps rides along in the writes of the sessions' journal. */
  readonly ridesAlong: boolean
  readonly listeners: Listeners<FeedEvents>
  readonly #options: FeedOptions
  #epoch = newId()
  #numbering = this.#numberingFrom(0)
  /** Where several processes give numbers. */
  readonly #places: SharedPlaces | undefined
  /** Since this process had old ones forgotten. */
  #placed = 0
  /** The newest ones that can be read, all after `#recentFrom`. */
  #recent: KeptNotification[] = []
  #recentChars = 0
  #recentFrom = 0
  #prunedThrough = 0
  /** Numbers up to this one do not count what there is: several processes gave them, by the time. */
  #uncounted = 0
  #sweep: Timer | undefined
  #closed = false

  constructor(options: FeedOptions) {
    const { logger, store, clock, node } = options
    this.#options = options
    if (node && store.shared)
      this.#places = new SharedPlaces({ store, node, clock, logger, show: (kept) => this.#show(kept) })
    this.ridesAlong = options.ridesAlong
    this.listeners = new Listeners<FeedEvents>((error) => logger.error({ err: error }, 'a follower of the feed failed'))
  }

  /** Takes up what an earlier process left. Call it once, before anything is placed. @throws what the store throws */
  async open(): Promise<void> {
    const { epoch, lastNumber } = await this.#options.store.open(this.#epoch)
    this.#epoch = epoch
    this.#numbering = this.#numberingFrom(lastNumber)
    this.#recentFrom = lastNumber
    if (lastNumber >= 10 ** DIGITS) this.#uncounted = lastNumber
    this.#places?.open(lastNumber)
    if (lastNumber === 0) return
    void this.#prune()
    this.#sweepLater()
  }

  close(): void {
    this.#closed = true
    this.#places?.close()
    this.#sweep?.cancel()
  }

  #numberingFrom(number: number) {
    return new Numbering<KeptNotification>(number, (_number, kept) => this.#show(kept))
  }

  /** The id of the newest notification that can be read: the place from which everything is still to come. */
  get head(): string {
    return this.#places?.headId ?? this.idOf(this.headNumber)
  }

  get headNumber(): number {
    return this.#places?.head ?? this.#numbering.head
  }

  /** Another process has kept something, or may have. */
  nudge(): void {
    this.#places?.nudge()
  }

  /** The id of a place. */
  idOf(number: number): string {
    return `${this.#epoch}:${String(number).padStart(DIGITS, '0')}`
  }

  // ── what is told ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives a notification its place, for a write that begins now. Exactly one of `commit` and `renounce` follows. */
  place(told: Omit<SessionNotification, 'id'>): Placed {
    const number = (this.#places ?? this.#numbering).take()
    const notification: SessionNotification = { id: this.idOf(number), ...told }
    const { type, sessionId, ts, session } = notification
    const json = JSON.stringify(notification)
    const kept = { number, type, sessionId, profile: session.profile, ts, json }
    return { notification, kept: this.#places ? { ...kept, isPlacedWhenKept: true } : kept }
  }

  /** The notification is written down: it can be read. */
  commit({ kept }: Placed): void {
    this.#placed++
    if (this.#places) {
      this.#places.nudge()
      this.#options.tellOthers?.()
    } else this.#numbering.settle(kept.number, kept)
  }

  /** The notification was not written down. */
  renounce({ kept }: Placed): void {
    if (!this.#places) this.#numbering.settle(kept.number, undefined)
  }

  /** Writes it down where nothing else does. */
  add(placed: Placed): void {
    const { store, logger } = this.#options
    store.add(placed.kept).then(
      () => this.commit(placed),
      (error) => {
        this.renounce(placed)
        logger.error({ err: toError(error), sessionId: placed.kept.sessionId }, 'a notification could not be kept')
      },
    )
  }

  #show(kept: KeptNotification): void {
    this.#recent.push(kept)
    this.#recentChars += kept.json.length
    while (this.#recent.length > RECENT || (this.#recentChars > RECENT_CHARS && this.#recent.length > 1)) {
      const { number, json } = this.#recent.shift()!
      this.#recentFrom = number
      this.#recentChars -= json.length
    }
    this.listeners.emit('notification', kept)
    if (this.#closed) return
    const { retention } = this.#options
    if (
      this.#places || this.#uncounted
        ? this.#placed >= SLACK
        : kept.number - retention.maxCount >= this.#prunedThrough + SLACK
    )
      void this.#prune()
    this.#sweepLater()
  }

  /** Again and again, while there is anything. */
  #sweepLater(): void {
    const { store, retention, clock } = this.#options
    if (this.#closed) return
    this.#sweep ??= clock.after(Math.max(SOONEST_SWEEP_MS, Math.min(SWEEP_MS, retention.maxAgeMs)), async () => {
      this.#sweep = undefined
      await this.#prune()
      const isEmpty = (await store.oldest(0).catch(() => 0)) === undefined
      if (!isEmpty) this.#sweepLater()
    })
  }

  /** What is too old to be read. */
  get #since(): number {
    return this.#options.clock.now() - this.#options.retention.maxAgeMs
  }

  /** Numbers up to this one cannot be read any more. */
  get #through(): number {
    const through = this.#places ? 0 : this.#numbering.head - this.#options.retention.maxCount
    return through > this.#uncounted ? through : 0
  }

  async #prune(): Promise<void> {
    const { store, logger, forgetBefore } = this.#options
    this.#prunedThrough = this.#through
    this.#placed = 0
    try {
      await Promise.all([
        store.prune(this.#through, this.#since),
        (this.#places || this.#uncounted > 0) && store.shared?.keepNewest(this.#options.retention.maxCount),
      ])
      const everything = { after: this.#through, until: this.headNumber, since: this.#since }
      const [oldest] = await store.read(everything, { limit: 1, maxBytes: 0 })
      await forgetBefore(Math.max(this.#since, (oldest?.ts ?? 0) - MAX_SKEW_MS))
    } catch (error) {
      if (!this.#closed)
        logger.warn({ err: toError(error) }, 'old notifications could not be forgotten; they will be later')
    }
  }

  // ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Notifications that a caller may see, oldest first: those after a place, or without one the newest.
   * @returns their JSON · `next`: the place after which there are more
   * @throws SG_ERR_VALIDATION on a place that is none of ours · SG_ERR_STORE_UNAVAILABLE
   */
  async page(query: ListNotificationsQuery, principal: Principal): Promise<Page<KeptNotification>> {
    const { after, limit = MAX_PAGE } = query
    if (this.#places) await this.#ask(() => this.#places!.follow())
    const number = after === undefined ? undefined : ((await this.resolve(after))?.number ?? 0)
    const range = this.#range(number ?? 0, filterOf(query), principal)
    const newest = number === undefined
    const found = await this.#read(range, { limit: newest ? limit : limit + 1, maxBytes: MAX_PAGE_BYTES, newest })
    const items = found.slice(0, limit)
    const last = items.at(-1)
    const isMore = !newest && last !== undefined && (found.length > limit || (await this.#hasAfter(last, range)))
    return { items, next: isMore ? idIn(last) : undefined }
  }

  /** A page may have ended before its limit, at as many bytes as it may have. */
  async #hasAfter({ number }: KeptNotification, range: NotificationRange): Promise<boolean> {
    if (number >= range.until) return false
    return (await this.#read({ ...range, after: number }, { limit: 1, maxBytes: 0 })).length > 0
  }

  /**
   * The place of an id; undefined for one of another feed, or that this one has not come to.
   * @returns `isLost`: something after it can no longer be read
   * @throws SG_ERR_VALIDATION · SG_ERR_STORE_UNAVAILABLE
   */
  async resolve(id: string): Promise<{ number: number; isLost?: boolean } | undefined> {
    const match = ID.exec(id)
    if (!match) throw invalidField('after', 'is not the id of a notification.')
    if (match[1] !== this.#epoch) return undefined
    const given = Number(match[2])
    if (!this.#places) return given <= this.headNumber ? { number: given } : undefined
    const oldest = (await this.#oldest()) ?? this.headNumber + 1
    const { place, isLost } = await this.#ask(() => this.#places!.find(given, oldest))
    return place <= this.headNumber ? { number: place, isLost } : undefined
  }

  /** One that a caller may see. @throws SG_ERR_NOTIFICATION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE */
  async find(id: string, principal: Principal): Promise<KeptNotification> {
    const number = ID.test(id) ? (await this.resolve(id))?.number : undefined
    const after = (number ?? 0) - 1
    const range = { ...this.#range(after, {}, principal), until: number ?? 0 }
    const [found] = range.after === after ? await this.#read(range, { limit: 1, maxBytes: 0 }) : []
    if (!found || idIn(found) !== id) throw new GatewayError('SG_ERR_NOTIFICATION_NOT_FOUND')
    return found
  }

  /**
   * Where a reader goes on who knows everything up to an id; without one at the head.
   * @returns `truncated`: something after it cannot be read any more, and it goes on with the oldest that can
   */
  async placeAfter(id: string | undefined): Promise<{ number: number; id: string; truncated: boolean }> {
    if (this.#places) await this.#ask(() => this.#places!.follow())
    const known = id === undefined ? { number: this.headNumber } : await this.resolve(id)
    const { headNumber: head } = this
    if (known?.number === head) return { number: head, id: this.head, truncated: false }
    const oldest = (await this.#oldest()) ?? head + 1
    const truncated = known === undefined || (known.isLost ?? known.number < oldest - 1)
    const number = truncated ? oldest - 1 : known.number
    return { number, id: truncated || id === undefined ? this.idOf(number) : id, truncated }
  }

  /** The smallest number that can be read. */
  async #oldest(): Promise<number | undefined> {
    const oldest = await this.#ask(() => this.#options.store.oldest(this.#since))
    return oldest === undefined ? undefined : Math.max(oldest, this.#through + 1)
  }

  /**
   * The next ones that a caller may see.
   * @returns `through`: the place up to which that is all
   */
  async readOn(
    after: number,
    filter: FeedFilter,
    principal: Principal,
    maxBytes: number,
  ): Promise<{ found: readonly KeptNotification[]; through: number; id: string }> {
    const { headNumber: head, head: headId } = this
    const range = this.#range(after, filter, principal)
    const page = { limit: MAX_PAGE, maxBytes }
    const isRecent = after >= this.#recentFrom
    const found = isRecent
      ? pageOf(
          this.#recentAfter(after).filter((kept) => isIn(range, kept)),
          page,
        )
      : await this.#read(range, page)
    // a page that ended early ends somewhere before the head
    const last = found.at(-1)
    return last ? { found, through: last.number, id: idIn(last) } : { found, through: head, id: headId }
  }

  /** The search begins at the end: who follows has seen almost all of them. */
  #recentAfter(after: number): KeptNotification[] {
    let at = this.#recent.length
    while (at > 0 && this.#recent[at - 1]!.number > after) at--
    return this.#recent.slice(at)
  }

  #range(after: number, { types, profile }: FeedFilter, principal: Principal): NotificationRange {
    return {
      after: Math.max(after, this.#through),
      until: this.headNumber,
      since: this.#since,
      types,
      profiles: profilesAsked(principal, profile),
    }
  }

  #read(...[range, page]: Parameters<NotificationStore['read']>): Promise<KeptNotification[]> {
    return this.#ask(() => this.#options.store.read(range, page))
  }

  #ask<T>(question: () => Promise<T>): Promise<T> {
    return readInTime(this.#options.clock, question)
  }
}

/** What a query asks for. */
export const filterOf = ({ types, profile }: Pick<ListNotificationsQuery, 'types' | 'profile'>): FeedFilter => ({
  types: types?.split(',') as NotificationType[] | undefined,
  profile,
})
