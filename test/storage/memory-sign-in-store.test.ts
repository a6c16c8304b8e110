import t from 'tap'
import { signInStoreConformance } from '../../src/console/store-conformance.js'
import { createMemorySignInStore } from '../../src/storage/memory/sign-in-store.js'

for (const { name, run } of signInStoreConformance) t.test(name, () => run(createMemorySignInStore()))
