import type { GatewayStorage } from '../storage.js'
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

/** The parts of a storage that a database has. */
export const storageParts = (call: CallDatabase, now: () => number) =>
  ({
    sessions: sessionStore(call),
    journal: sessionJournal(call, now),
    profiles: profileStore(call, now),
    queue: queueAdapter(call, now),
    idempotency: idempotencyStore(call, now),
    outbox: deliveryOutbox(call),
    notifications: notificationStore(call),
    channels: channelStore(call),
    signIns: signInStore(call),
    usage: usageStore(call),
  }) satisfies Partial<GatewayStorage>

export type StorageParts = ReturnType<typeof storageParts>
