import { type GatewayStorage, StorageError } from '../storage.js'
import { idempotencyStore } from './idempotency-store.js'
import type { CallDatabase } from './operations.js'
import { queueAdapter } from './queue-adapter.js'
import { sessionJournal } from './session-journal.js'
import {
  channelStore,
  deliveryOutbox,
  notificationStore,
  profileStore,
  sessionStore,
  signInStore,
  usageStore,
} from './stores.js'

/** Everything that a gateway keeps, in one database. */
export type DatabaseStorage = GatewayStorage &
  Required<Pick<GatewayStorage, 'sessions' | 'notifications' | 'channels' | 'signIns' | 'usage'>>

/** A database from when it was opened until it is closed. */
export interface OpenDatabase {
  readonly call: CallDatabase
  /** Other processes have it open too. Default false. */
  readonly isOneOfMany?: boolean
  /** As `GatewayStorage.atTurnsEnd`. */
  atTurnsEnd(work: () => void): void
  /** Resolves when all that was asked for is done and it may be opened again. */
  close(): Promise<void>
}

/**
 * @param place of the database, to be named to whoever asks while it is not open
 * @param openDatabase one after the other with its close, however often either is asked for
 * @param isShared whether several processes may have it open
 */
export function databaseStorage(
  place: string,
  openDatabase: () => Promise<OpenDatabase>,
  now: () => number = Date.now,
  isShared = false,
): DatabaseStorage {
  let database: OpenDatabase | undefined
  let opened: Promise<void> | undefined
  let closed: Promise<void> = Promise.resolve()
  const call: CallDatabase = (name, ...args) =>
    database ? database.call(name, ...args) : Promise.reject(notOpen(place))
  return {
    oneWrite: true,
    sessions: sessionStore(call),
    journal: sessionJournal(call, now, isShared),
    profiles: profileStore(call, now, isShared),
    queue: queueAdapter(call, now),
    idempotency: idempotencyStore(call, now),
    outbox: deliveryOutbox(call, () => database?.isOneOfMany ?? false),
    notifications: notificationStore(call, isShared),
    channels: channelStore(call, isShared),
    signIns: signInStore(call, isShared),
    usage: usageStore(call),
    atTurnsEnd(work) {
      if (database) database.atTurnsEnd(work)
      else queueMicrotask(work)
    },
    async probe() {
      await call('probe.write')
      await call('probe.clear')
    },
    open() {
      if (opened) return opened
      const opening = closed.then(async () => {
        database = await openDatabase()
      })
      opened = opening
      // what went wrong may be gone at the next try
      opening.catch(() => {
        if (opened === opening) opened = undefined
      })
      return opening
    },
    close() {
      const close = async () => {
        const closing = database
        database = undefined
        await closing?.close()
      }
      if (opened) closed = opened.then(close, () => {})
      opened = undefined
      return closed
    },
  }
}

export const notOpen = (place: string): StorageError => new StorageError('STORAGE_CLOSED', `${place} is not open.`)
