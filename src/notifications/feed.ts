import type { ListNotificationsQuery, NotificationType, SessionNotification } from '../../schemas/notifications.js'
import { GatewayError, invalidField, toError } from '../errors.js'
import { type Clock, newId, type Timer } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { MAX_PAGE, MAX_PAGE_BYTES, type Page } from '../lib/paging.js'
import { PATIENCE_MS, tooLate, unavailable } from '../lib/patience.js'
import { within } from '../lib/within.js'
import { type Principal, visible, visibleProfiles } from '../principal.js'
import { Numbering } from './numbering.js'
import { isIn, pageOf } from './range.js'
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
const ID = /^([\w-]{1,64}):(\d{12,15})$/
/** The newest ones are kept in memory for those who follow: as many, of so many characters. */
const RECENT = 1_000
const RECENT_CHARS = 4 * 1024 * 1024
/** Beyond `maxCount`, before the oldest are forgotten. */
const SLACK = 100
/** What is too old is forgotten as often, while there is anything. */
const SWEEP_MS = 60 * 60 * 1000

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
  /** The newest ones that can be read, all after `#recentFrom`. */
  #recent: KeptNotification[] = []
  #recentChars = 0
  #recentFrom = 0
  #prunedThrough = 0
  #sweep: Timer | undefined
  #closed = false

  constructor(options: FeedOptions) {
    const { logger } = options
    this.#options = options
    this.ridesAlong = options.ridesAlong
    this.listeners = new Listeners<FeedEvents>((error) => logger.error({ err: error }, 'a follower of the feed failed'))
  }

  /** Takes up what an earlier process left. Call it once, before anything is placed. @throws what the store throws */
  async open(): Promise<void> {
    const { epoch, lastNumber } = await this.#options.store.open(this.#epoch)
    this.#epoch = epoch
    this.#numbering = this.#numberingFrom(lastNumber)
    this.#recentFrom = lastNumber
    if (lastNumber === 0) return
    void this.#prune()
    this.#sweepLater()
  }

  close(): void {
    this.#closed = true
    this.#sweep?.cancel()
  }

  #numberingFrom(number: number) {
    return new Numbering<KeptNotification>(number, (_number, kept) => this.#show(kept))
  }

  /** The id of the newest notification that can be read: the place from which everything is still to come. */
  get head(): string {
    return this.idOf(this.#numbering.head)
  }

  get headNumber(): number {
    return this.#numbering.head
  }

  /** The id of a place. */
  idOf(number: number): string {
    return `${this.#epoch}:${String(number).padStart(DIGITS, '0')}`
  }

  // ── what is told ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives a notification its place, for a write that begins now. Exactly one of `commit` and `renounce` follows. */
  place(told: Omit<SessionNotification, 'id'>): Placed {
    const number = this.#numbering.take()
    const notification: SessionNotification = { id: this.idOf(number), ...told }
    const { type, sessionId, ts, session } = notification
    const json = JSON.stringify(notification)
    return { notification, kept: { number, type, sessionId, profile: session.profile, ts, json } }
  }

  /** It is written down: it can be read. */
  commit({ kept }: Placed): void {
    this.#numbering.settle(kept.number, kept)
  }

  /** It was not written down. */
  renounce({ kept }: Placed): void {
    this.#numbering.settle(kept.number, undefined)
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
    if (kept.number - retention.maxCount >= this.#prunedThrough + SLACK) void this.#prune()
    this.#sweepLater()
  }

  /** Again and again, while there is anything. */
  #sweepLater(): void {
    const { store, retention, clock } = this.#options
    if (this.#closed) return
    this.#sweep ??= clock.after(Math.min(SWEEP_MS, retention.maxAgeMs), async () => {
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
    return Math.max(0, this.#numbering.head - this.#options.retention.maxCount)
  }

  async #prune(): Promise<void> {
    const { store, logger } = this.#options
    this.#prunedThrough = this.#through
    await store
      .prune(this.#through, this.#since)
      .catch((error) =>
        logger.warn({ err: toError(error) }, 'old notifications could not be forgotten; they will be later'),
      )
  }

  // ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Notifications that a caller may see, oldest first: those after a place, or without one the newest.
   * @returns their JSON · `next`: the place after which there are more
   * @throws SG_ERR_VALIDATION on a place that is none of ours · SG_ERR_STORE_UNAVAILABLE
   */
  async page(query: ListNotificationsQuery, principal: Principal): Promise<Page<KeptNotification>> {
    const { after, limit = MAX_PAGE } = query
    const number = after === undefined ? undefined : (this.resolve(after) ?? 0)
    const range = this.#range(number ?? 0, filterOf(query), principal)
    const newest = number === undefined
    const found = await this.#read(range, { limit: newest ? limit : limit + 1, maxBytes: MAX_PAGE_BYTES, newest })
    const items = found.slice(0, limit)
    const last = items.at(-1)
    const isMore = !newest && last !== undefined && (found.length > limit || (await this.#hasAfter(last, range)))
    return { items, next: isMore ? this.idOf(last.number) : undefined }
  }

  /** A page may have ended before its limit, at as many bytes as it may have. */
  async #hasAfter({ number }: KeptNotification, range: NotificationRange): Promise<boolean> {
    if (number >= range.until) return false
    return (await this.#read({ ...range, after: number }, { limit: 1, maxBytes: 0 })).length > 0
  }

  /** The place of an id; undefined for one of another feed, or that this one has not come to. @throws SG_ERR_VALIDATION */
  resolve(id: string): number | undefined {
    const match = ID.exec(id)
    if (!match) throw invalidField('after', 'is not the id of a notification.')
    const number = Number(match[2])
    return match[1] === this.#epoch && number <= this.#numbering.head ? number : undefined
  }

  /** One that a caller may see. @throws SG_ERR_NOTIFICATION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE */
  async find(id: string, principal: Principal): Promise<KeptNotification> {
    const number = ID.test(id) ? this.resolve(id) : undefined
    const after = (number ?? 0) - 1
    const range = { ...this.#range(after, {}, principal), until: number ?? 0 }
    const [found] = range.after === after ? await this.#read(range, { limit: 1, maxBytes: 0 }) : []
    if (!found) throw new GatewayError('SG_ERR_NOTIFICATION_NOT_FOUND')
    return found
  }

  /**
   * Where a reader goes on who knows everything up to an id; without one at the head.
   * @returns `truncated`: something after it cannot be read any more, and it goes on with the oldest that can
   */
  async placeAfter(id: string | undefined): Promise<{ number: number; id: string; truncated: boolean }> {
    const { head } = this.#numbering
    const known = id === undefined ? head : this.resolve(id)
    if (known === head) return { number: head, id: this.idOf(head), truncated: false }
    const oldest = (await this.#oldest()) ?? head + 1
    const truncated = known === undefined || known < oldest - 1
    const number = truncated ? oldest - 1 : known
    return { number, id: this.idOf(number), truncated }
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
  ): Promise<{ found: readonly KeptNotification[]; through: number }> {
    const { head } = this.#numbering
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
    return { found, through: found.at(-1)?.number ?? head }
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
      until: this.#numbering.head,
      since: this.#since,
      types,
      profiles: profile === undefined ? visibleProfiles(principal) : visible(principal, profile) ? [profile] : [],
    }
  }

  #read(...[range, page]: Parameters<NotificationStore['read']>): Promise<KeptNotification[]> {
    return this.#ask(() => this.#options.store.read(range, page))
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    try {
      return await within(PATIENCE_MS, question(), { clock: this.#options.clock, onLate: tooLate })
    } catch (error) {
      throw error instanceof GatewayError ? error : unavailable(error)
    }
  }
}

/** What a query asks for. */
export const filterOf = ({ types, profile }: Pick<ListNotificationsQuery, 'types' | 'profile'>): FeedFilter => ({
  types: types?.split(',') as NotificationType[] | undefined,
  profile,
})
