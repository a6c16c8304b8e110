import t from 'tap'
import { idempotencyStoreConformance } from '../../src/idempotency/store-conformance.js'
import { createMemoryIdempotencyStore } from '../../src/storage/memory/idempotency-store.js'

for (const { name, run } of idempotencyStoreConformance)
  t.test(name, async () => {
    let now = 1_760_000_000_000
    const pass = (ms: number) => {
      now += ms
    }
    await run({ store: createMemoryIdempotencyStore({ now: () => now }), pass })
  })
