import t from 'tap'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
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
