import t from 'tap'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { deliveryOutboxConformance } from '../../src/webhooks/outbox-conformance.js'

for (const { name, run } of deliveryOutboxConformance) t.test(name, () => run(createMemoryDeliveryOutbox()))
