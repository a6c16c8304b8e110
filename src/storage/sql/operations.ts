import type { UsageGroup } from '../../../schemas/usage.js'
import type { ClaimTerms, Expected, JobCount, JobPatch } from '../../jobs/adapter.js'
import type { KeptNotification, NotificationPage, NotificationRange } from '../../notifications/store.js'
import type { AtRestQuery, DueSleeper, RestStatus } from '../../sessions/kept/journal.js'
import type { UsageCount, UsageRange, UsageSum } from '../../usage/store.js'
import type {
  DeliveryRow,
  DeliveryValues,
  JobPageFilter,
  JobRow,
  KeptKeyRow,
  KnownKeyRow,
  NewsRow,
  ParkedRow,
  SessionRow,
  SessionWrite,
} from './rows.js'

/** Events as UTF-8, in a few pieces of whole events. */
export interface EventBytes {
  seqs: number[]
  /** Bytes of each. */
  sizes: number[]
  /** Each in a buffer that can be handed over. */
  pieces: (Uint8Array & { readonly buffer: ArrayBuffer })[]
}

/** Events as a database gives them. */
export type EventsRead = { seqs: number[]; texts: string[] } | EventBytes

/**
 * Everything that can be asked of a database, by name; the parts of a storage are made of these. What an operation is given and gives
 * back survives being sent to a thread. Times are epoch milliseconds.
 */
export interface Operations {
  'journal.write'(write: SessionWrite): void
  /** False: there is no such session. Of a key that is there the first stays. */
  'journal.deposit'(id: string, news: readonly Pick<NewsRow, 'key' | 'news'>[], keys?: KeptKeyRow[]): boolean
  'journal.page'(afterKey: number, limit: number): SessionRow[]
  /** As `page`, without those at rest that have no news. */
  'journal.awake'(afterKey: number, limit: number): SessionRow[]
  /** About 1 MiB at most, which whoever asks takes in one turn. */
  'journal.atRest'(query: AtRestQuery): { rows: (SessionRow & { place: number })[]; isLast: boolean }
  'journal.endedFirst'(limit: number): { id: string; endedAt: number }[]
  'journal.dueFirst'(limit: number, after?: DueSleeper): DueSleeper[]
  'journal.restTotals'(): Record<RestStatus, number> & { lastOrder: number }
  'journal.sessionOf'(executionId: string): string | undefined
  'journal.continues'(sdkSessionId: string): boolean
  /** Of the sessions with these keys, both included. */
  'journal.news'(from: number, to: number): NewsRow[]
  'journal.get'(
    id: string,
  ): { row: SessionRow & { origin: string; snapshot: string | null }; news: NewsRow[] } | undefined
  'journal.read'(id: string, afterSeq: number, untilSeq: number, maxBytes: number): EventsRead
  /** The events go later, in `sweep`: there may be very many. */
  'journal.remove'(
    id: string,
    deliveries?: readonly DeliveryValues[],
    notifications?: readonly KeptNotification[],
    usage?: readonly UsageCount[],
  ): void
  /** Deletes at most so many events of removed sessions. @returns whether there may be more */
  'journal.sweep'(limit: number): boolean

  'parked.save'(id: string, record: string): void
  'parked.get'(id: string): string | undefined
  'parked.page'(after: number, limit: number): ParkedRow[]
  'parked.delete'(id: string): void

  'profiles.list'(): { name: string; profile: string }[]
  'profiles.save'(name: string, profile: string, key?: KeptKeyRow): void
  /** Saves it where that is stored, exactly; null: nothing. @returns whether it is stored now, with the key */
  'profiles.saveInstead'(name: string, profile: string, before: string | null, key?: KeptKeyRow): boolean
  'profiles.delete'(name: string): void

  'jobs.add'(info: string, request: string, priority: number, key?: KeptKeyRow): void
  /** Rows whose text is damaged are passed over, and stay as they are. */
  'jobs.claim'(now: number, limit: number, terms?: ClaimTerms): { rows: JobRow[]; paused: boolean }
  'jobs.get'(id: string): JobRow | undefined
  /** Ends at about 1 MiB too, which whoever asks takes in one turn. */
  'jobs.page'(filter: JobPageFilter): { rows: JobRow[]; isLast: boolean }
  /** @param deliveries kept when it changes the job */
  'jobs.update'(id: string, patch: JobPatch, expected?: Expected, deliveries?: readonly DeliveryValues[]): JobRow | null
  'jobs.remove'(id: string): void
  /** Of those that are not over. */
  'jobs.counts'(): JobCount[]
  /** Of those that wait for a time after this one, the one that falls due first before the others. */
  'jobs.delayed'(after: number, limit: number): { id: string; nextRunAt: number }[]
  /** Ids of the queued ones of these profiles, or of all, as they are claimed from then on, those that fall due later behind the others. */
  'jobs.next'(now: number, limit: number, profiles?: readonly string[]): string[]
  /** Jobs of this process that are running or parked, in the order of submission. */
  'jobs.owned'(after: number, limit: number): JobRow[]
  /** Ids of those with damaged text among the first that are ready. */
  'jobs.unreadable'(limit: number): string[]
  /** Of some of the jobs that ended by then, the one that ended first before the others, its `info`. */
  'jobs.ended'(finishedBy: number, limit: number): string[]
  /** Removes some of the jobs that ended by then. @returns how many */
  'jobs.prune'(finishedBy: number, limit: number): number
  'jobs.charge'(day: string, tokens: number): number
  'jobs.tokens'(day: string): number
  'jobs.settle'(
    id: string,
    patch: JobPatch,
    day: string,
    tokens: number,
    expected?: Expected,
    deliveries?: readonly DeliveryValues[],
  ): { row: JobRow | null; dailyTokens: number }

  /** What another request has there. Undefined: none, and where several processes have the database, the key is now this one's. */
  'idempotency.begin'(key: string, fingerprint: string, now: number): KnownKeyRow | undefined
  'idempotency.complete'(key: string, fingerprint: string, since: number, answer: string, now: number): void
  'idempotency.release'(key: string): void
  'idempotency.keep'(row: KeptKeyRow): void
  /** Of this process, where several have the database. @param keys only those */
  'idempotency.left'(keys?: readonly string[]): KeptKeyRow[]

  'outbox.add'(values: DeliveryValues): void
  'outbox.change'(values: DeliveryValues): void
  'outbox.remove'(lane: string, id: string): void
  /** Of this process, where several have the database; so of the next two. */
  'outbox.page'(after: number, limit: number): DeliveryRow[]
  /** Their places, of some lanes, in their order. */
  'outbox.places'(lanes: readonly string[]): number[]
  'outbox.at'(places: readonly number[]): DeliveryRow[]
  /** Whether another process has deliveries of that lane which come before all of these. */
  'outbox.isHeldUp'(lane: string, ids: readonly string[]): boolean
  'outbox.log'(lane: string, attempt: string): void
  'outbox.attempts'(lane: string): string[]
  'outbox.forget'(lane: string): void
  /**
   * Of the attempts after a place, at most so many, those of before a time go whose lane has a blank in its name.
   * @returns all of them, with whether they are of before that time
   */
  'outbox.prune'(after: number, before: number, limit: number): { n: number; isOld: boolean }[]
  'outbox.rememberGone'(key: string): void
  'outbox.gone'(): string[]

  'notifications.open'(epoch: string): { epoch: string; lastNumber: number }
  'notifications.add'(kept: KeptNotification): void
  'notifications.read'(range: NotificationRange, page: NotificationPage): KeptNotification[]
  'notifications.oldest'(since: number): number | undefined
  /** At most so many of either kind. @returns whether there may be more */
  'notifications.prune'(through: number, before: number, limit: number): boolean
  'notifications.placeOf'(number: number): { place: number | undefined; forgotten: number }
  /** Forgets at most so many. @returns whether there may be more */
  'notifications.keepNewest'(count: number, limit: number): boolean

  'channels.keyOnce'(name: string, value: string): string
  'channels.key'(name: string): string | undefined
  'channels.saveKey'(name: string, value: string): void
  'channels.subscriptions'(): { id: string; subscription: string }[]
  'channels.saveSubscription'(id: string, subscription: string): void
  'channels.removeSubscription'(id: string): void

  'signIns.list'(): { id: string; signIn: string }[]
  'signIns.save'(id: string, signIn: string): void
  /** As `save`, of one that is there still. */
  'signIns.renew'(id: string, signIn: string): void
  'signIns.remove'(id: string): void

  'usage.add'(counts: readonly UsageCount[]): void
  'usage.read'(range: UsageRange, by: readonly UsageGroup[], limit: number): UsageSum[]

  /** Rises with every change of such rows. 0 where one process has the database. */
  'versions.of'(name: SharedName): number

  /** Writes a little, for good. */
  'probe.write'(): void
  'probe.clear'(): void
}

/** What processes that share a database read once, and again when its version is another. */
export type SharedName = 'profiles' | 'push_subscriptions' | 'sign_ins'

/** Those of one part of a storage. */
export type OperationsOf<Part extends string> = Pick<Operations, Extract<keyof Operations, `${Part}.${string}`>>

/** Asks it of the open database. Rejects with a StorageError when nothing of it was done. */
export type CallDatabase = <Name extends keyof Operations>(
  name: Name,
  ...args: Parameters<Operations[Name]>
) => Promise<ReturnType<Operations[Name]>>
