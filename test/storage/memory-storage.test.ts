import { readFileSync } from 'node:fs'
import t from 'tap'
import * as library from '../../src/index.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { gatewayStorageConformance } from '../../src/storage/storage-conformance.js'

for (const { name, run } of gatewayStorageConformance)
  t.test(name, async () => {
    const storage = createMemoryStorage()
    await storage.open()
    await run(storage, async () => {
      await storage.open()
      return storage
    })
  })

/** The suite of each part; one that has none does not compile. */
const SUITES: {
  [Part in keyof GatewayStorage as NonNullable<GatewayStorage[Part]> extends object
    ? NonNullable<GatewayStorage[Part]> extends (...given: never[]) => unknown
      ? never
      : Part
    : never]-?: keyof typeof library
} = {
  journal: 'sessionJournalConformance',
  sessions: 'sessionStoreConformance',
  profiles: 'profileStoreConformance',
  queue: 'queueAdapterConformance',
  idempotency: 'idempotencyStoreConformance',
  outbox: 'deliveryOutboxConformance',
  notifications: 'notificationStoreConformance',
  channels: 'channelStoreConformance',
  signIns: 'signInStoreConformance',
  usage: 'usageStoreConformance',
  cluster: 'clusterConformance',
}

t.test('an author of a storage has a suite for every part of it, and is told of it', async (t) => {
  const page = readFileSync(new URL('../../docs/writing-a-store.md', import.meta.url), 'utf8')
  const exported = new Map<string, unknown>(Object.entries(library))
  for (const suite of Object.values(SUITES)) {
    t.ok(Array.isArray(exported.get(suite)), suite)
    t.ok(page.includes(`\`${suite}\``), `${suite} on the page`)
  }
})
