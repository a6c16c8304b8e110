import type { SignInStore } from '../console/store.js'
import { isOf } from '../errors.js'
import type { IdempotencyStore } from '../idempotency/store.js'
import type { QueueAdapter } from '../jobs/adapter.js'
import type { ChannelStore } from '../notifications/channels/store.js'
import type { NotificationStore } from '../notifications/store.js'
import type { ProfileStore } from '../profiles/store.js'
import type { SessionJournal } from '../sessions/kept/journal.js'
import type { SessionStore } from '../sessions/kept/store.js'
import type { UsageStore } from '../usage/store.js'
import type { DeliveryOutbox } from '../webhooks/outbox.js'
import type { ClusterStorage } from './cluster.js'

/**
 * One place for everything that a gateway keeps. What is asked of its parts in one turn of the event loop is done in that order, and,
 * as long as nothing of it fails, becomes durable at once. What one call hands over is one write: done as a whole or not at all.
 * `gatewayStorageConformance` says what its parts do together.
 */
export interface GatewayStorage {
  readonly journal: SessionJournal
  /** Parked sessions as they were kept before the journal had them: each is moved there at the start. */
  readonly sessions?: SessionStore
  readonly profiles: ProfileStore
  readonly queue: QueueAdapter
  readonly idempotency: IdempotencyStore
  readonly outbox: DeliveryOutbox
  /** Absent: notifications are kept for as long as the process runs. */
  readonly notifications?: NotificationStore
  /** Keys of the gateway's own and push subscriptions. Absent: they last as long as the process. */
  readonly channels?: ChannelStore
  /** Browsers that are signed in to the console. Absent: they last as long as the process. */
  readonly signIns?: SignInStore
  /** What was used, as daily sums. Absent: counted for as long as the process runs. */
  readonly usage?: UsageStore
  /** Absent: it is always one process's. */
  readonly cluster?: ClusterStorage
  /**
   * What rides along in a call, a key, deliveries, notifications or counts, is kept in its write. Absent: it is kept by calls of its own, keys
   * before and the others in the same turn, so that little is left to chance.
   */
  readonly oneWrite?: true
  /**
   * Runs `work` when the turn of the event loop is over: what it asks for goes with what the turn has asked for. Absent: the turn is over
   * as soon as nothing of it is left to run.
   */
  readonly atTurnsEnd?: (work: () => void) => void
  /** Makes the parts usable; does nothing when they are. Rejects when another process holds the storage, and what cannot be read. */
  open(): Promise<void>
  /** Who is told while it cannot be reached, although nothing is asked of it. Absent: whoever asks for something finds out. */
  onAway?(listener: (error: StorageError) => void): void
  /** Writes a little for good, and takes it away again. Rejects when it cannot. Absent: what callers ask for says whether it can. */
  probe?(): Promise<void>
  /** Resolves when everything that was asked for is done and the storage may be opened again, here or by another process. */
  close(): Promise<void>
}

/** Why the storage did not do what it was asked for: nothing of it was done. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  /** The backend's own name of the problem, such as `SQLITE_FULL`. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Asked for what cannot be, which says nothing about the storage. */
export const isRefusal = (error: unknown): boolean => isOf(StorageError, error) && error.code === 'STORAGE_REFUSED'

/** A record is there that cannot be read, which says nothing about the others. */
export const isUnreadable = (error: unknown): boolean =>
  isOf(StorageError, error) && error.code === 'STORAGE_UNREADABLE'

/** This process is no member of the storage any more: nothing that it asks for is ever done. */
export const isFenced = (error: unknown): boolean => isOf(StorageError, error) && error.code === 'STORAGE_FENCED'
