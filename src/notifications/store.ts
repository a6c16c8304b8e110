import type { NotificationType } from '../../schemas/notifications.js'
import type { UsageCount } from '../usage/store.js'
import type { KeptDelivery } from '../webhooks/outbox.js'

/** A notification as it is kept, until its retention is over. */
export interface KeptNotification {
  /** Its place in the feed: rises, and is never given again. */
  number: number
  type: NotificationType
  sessionId: string
  profile: string
  /** Epoch milliseconds of the event. */
  ts: number
  /** The notification as it is sent: its JSON, never serialised again. */
  json: string
  /** It is read after all that could be read when it was kept, whatever its number; `read` then gives its place as `number`. */
  isPlacedWhenKept?: true
}

/** What is kept in the same write as the event that it tells of. */
export interface KeptTelling {
  /** Absent: it is kept elsewhere. */
  notification?: KeptNotification
  deliveries: KeptDelivery[]
  /** What the event counts for. Absent: it is counted elsewhere, or for nothing. */
  usage?: readonly UsageCount[]
}

/** Which notifications are asked for; what is absent does not limit. */
export interface NotificationRange {
  /** Those with a greater number. */
  after: number
  /** Those up to this number. */
  until: number
  /** Those of this time and later, epoch milliseconds. */
  since: number
  types?: readonly NotificationType[] | undefined
  profiles?: readonly string[] | undefined
}

/** How much is read at once. */
export interface NotificationPage {
  limit: number
  /** Of JSON; a page has at least one when there is one. */
  maxBytes: number
  /** The last ones of the range instead of the first. */
  newest?: boolean
}

/** Where notifications are kept. `notificationStoreConformance` says what each method does. */
export interface NotificationStore {
  /**
   * Whose feed it is, and the greatest number that was ever kept; 0 at first.
   * @param epoch the feed's identity from now on, when it has none yet
   */
  open(epoch: string): Promise<{ epoch: string; lastNumber: number }>
  /** Keeps one; resolves when it is durable. Those that ride along in a write of the storage's journal need no call of their own. */
  add(kept: KeptNotification): Promise<void>
  /** In rising order of their numbers. */
  read(range: NotificationRange, page: NotificationPage): Promise<KeptNotification[]>
  /** The smallest number that is kept of this time or later; undefined when there is none. */
  oldest(since: number): Promise<number | undefined>
  /** Forgets those up to this number, and those from before this time. */
  prune(through: number, before: number): Promise<void>
  /** Of a store that several processes have. */
  readonly shared?: {
    /** Where the one with this number is, and the greatest place of those that were forgotten. */
    placeOf(number: number): Promise<{ place: number | undefined; forgotten: number }>
    /** Forgets all but so many of the newest. */
    keepNewest(count: number): Promise<void>
  }
}
