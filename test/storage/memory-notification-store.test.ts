import t from 'tap'
import { notificationStoreConformance } from '../../src/notifications/store-conformance.js'
import { createMemoryNotificationStore } from '../../src/storage/memory/notification-store.js'

for (const { name, run } of notificationStoreConformance) t.test(name, () => run(createMemoryNotificationStore()))

t.test('what is kept in memory has an end, whatever the size of each', async (t) => {
  const store = createMemoryNotificationStore()
  const json = JSON.stringify('x'.repeat(1024 * 1024))
  for (let number = 1; number <= 100; number++)
    await store.add({ number, type: 'turn_completed', sessionId: 's', profile: 'p', ts: 1, json })
  const oldest = await store.oldest(0)
  t.ok(oldest! > 36 && oldest! < 40, `${oldest}`)
})
