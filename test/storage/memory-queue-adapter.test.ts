import t from 'tap'
import { queueAdapterConformance } from '../../src/jobs/adapter-conformance.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'

for (const { name, run } of queueAdapterConformance) t.test(name, () => run(createMemoryQueueAdapter()))
