import t, { type Test } from 'tap'
import { signInStoreConformance } from '../../src/console/store-conformance.js'
import { idempotencyStoreConformance } from '../../src/idempotency/store-conformance.js'
import { queueAdapterConformance } from '../../src/jobs/adapter-conformance.js'
import { channelStoreConformance } from '../../src/notifications/channels/store-conformance.js'
import { notificationStoreConformance } from '../../src/notifications/store-conformance.js'
import { profileStoreConformance } from '../../src/profiles/store-conformance.js'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import { sessionStoreConformance } from '../../src/sessions/kept/store-conformance.js'
import type { SqliteStorage } from '../../src/storage/sqlite/storage.js'
import { gatewayStorageConformance } from '../../src/storage/storage-conformance.js'
import { usageStoreConformance } from '../../src/usage/store-conformance.js'
import { deliveryOutboxConformance } from '../../src/webhooks/outbox-conformance.js'
import { partOf, sqliteWorld } from './sqlite-world.js'

type Part = Exclude<keyof SqliteStorage, 'open' | 'close' | 'backup' | 'check' | 'probe' | 'oneWrite'>

function conforms<P extends Part>(
  part: P,
  cases: readonly {
    name: string
    run(part: SqliteStorage[P], reopen?: () => Promise<SqliteStorage[P]>): Promise<void>
  }[],
): void {
  const inWorld = async (t: Test, run: (typeof cases)[number]['run']) => {
    const world = await sqliteWorld(t)
    const forwarding = partOf(world, part)
    await run(forwarding, async () => {
      await world.reopen()
      return forwarding
    })
  }
  t.test(part, async (t) => {
    for (const { name, run } of cases) await t.test(name, (t) => inWorld(t, run))
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
      const world = await sqliteWorld(t, { now: () => now })
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
      const world = await sqliteWorld(t)
      await run(world.storage, () => world.reopen())
    })
})
