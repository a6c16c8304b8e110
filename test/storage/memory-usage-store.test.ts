import t from 'tap'
import { createMemoryUsageStore } from '../../src/storage/memory/usage-store.js'
import { usageStoreConformance } from '../../src/usage/store-conformance.js'

for (const { name, run } of usageStoreConformance) t.test(name, () => run(createMemoryUsageStore()))
