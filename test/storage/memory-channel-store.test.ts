import t from 'tap'
import { channelStoreConformance } from '../../src/notifications/channels/store-conformance.js'
import { createMemoryChannelStore } from '../../src/storage/memory/channel-store.js'

for (const { name, run } of channelStoreConformance) t.test(name, () => run(createMemoryChannelStore()))
