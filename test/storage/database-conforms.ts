import t, { type Test } from 'tap'
import { signInStoreConformance } from '../../src/console/store-conformance.js'
import { idempotencyStoreConformance } from '../../src/idempotency/store-conformance.js'
import { queueAdapterConformance } from '../../src/jobs/adapter-conformance.js'
import { channelStoreConformance } from '../../src/notifications/channels/store-conformance.js'
import { notificationStoreConformance } from '../../src/notifications/store-conformance.js'
import { profileStoreConformance } from '../../src/profiles/store-conformance.js'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import { sessionStoreConformance } from '../../src/sessions/kept/store-conformance.js'
import type { DatabaseStorage } from '../../src/storage/sql/storage.js'
import { gatewayStorageConformance } from '../../src/storage/storage-conformance.js'
import { usageStoreConformance } from '../../src/usage/store-conformance.js'
import { deliveryOutboxConformance } from '../../src/webhooks/outbox-conformance.js'

type StorageParts = Omit<DatabaseStorage, 'oneWrite' | 'atTurnsEnd' | 'open' | 'probe' | 'close'>

export interface DatabaseWorld {
  /** The one that is open now. */
  storage: DatabaseStorage
  /** As a new process would see it. */
  reopen(): Promise<DatabaseStorage>
}

export type NewWorld = (t: Test, options?: { now?: () => number }) => Promise<DatabaseWorld>

/** A part that goes on to work after a reopening, for cases that use both. */
export function partOf<P extends keyof StorageParts>(world: DatabaseWorld, part: P): StorageParts[P] {
  const forward = (_target: object, name: string) => {
    const value = (world.storage[part] as unknown as Record<string, unknown>)[name]
    return typeof value === 'function' ? (...args: unknown[]) => value.apply(world.storage[part], args) : value
  }
  return new Proxy({}, { get: forward as ProxyHandler<object>['get'] & {} }) as StorageParts[P]
}

/** Runs every suite that there is for parts of storages on a database. */
export function databaseConforms(newWorld: NewWorld): void {
  function conforms<P extends keyof StorageParts>(
    part: P,
    cases: readonly {
      name: string
      run(part: StorageParts[P], reopen?: () => Promise<StorageParts[P]>): Promise<void>
    }[],
  ): void {
    t.test(part, async (t) => {
      for (const { name, run } of cases)
        await t.test(name, async (t) => {
          const world = await newWorld(t)
          const forwarding = partOf(world, part)
          await run(forwarding, async () => {
            await world.reopen()
            return forwarding
          })
        })
    })
  }
  conforms('sessions', sessionStoreConformance)
  conforms('journal', sessionJournalConformance)
  conforms('profiles', profileStoreConformance)
  conforms('queue', queueAdapterConformance)
  conforms('outbox', deliveryOutboxConformance)
  conforms('notifications', notificationStoreConformance)
  conforms('channels', channelStoreConformance)
  conforms('signIns', signInStoreConformance)
  conforms('usage', usageStoreConformance)

  t.test('idempotency', async (t) => {
    for (const { name, run } of idempotencyStoreConformance)
      await t.test(name, async (t) => {
        let now = 1_760_000_000_000
        const world = await newWorld(t, { now: () => now })
        const pass = (ms: number) => {
          now += ms
        }
        await run({
          store: world.storage.idempotency,
          pass,
          reopen: async () => (await world.reopen()).idempotency,
        })
      })
  })

  t.test('what is written together', async (t) => {
    for (const { name, run } of gatewayStorageConformance)
      await t.test(name, async (t) => {
        const world = await newWorld(t)
        await run(world.storage, () => world.reopen())
      })
  })
}
