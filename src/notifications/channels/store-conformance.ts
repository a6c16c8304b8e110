import assert from 'node:assert/strict'
import { type ConformanceCase, versionCase } from '../../lib/conformance.js'
import type { ChannelStore, KeptSubscription } from './store.js'

/** One promise of a ChannelStore. `reopen` gives what the next process finds; absent: nothing outlives this one. */
export type ChannelStoreCase = ConformanceCase<ChannelStore>

const subscription = (id: string, more: Partial<KeptSubscription> = {}): KeptSubscription => ({
  ...{ id, endpoint: `https://push.example/${id}`, keys: { p256dh: 'p', auth: 'a' }, createdAt: 1, expiresAt: 2 },
  ...more,
})

/** What every ChannelStore promises: run each on an empty one. */
export const channelStoreConformance: readonly ChannelStoreCase[] = [
  {
    name: 'keeps the first value of a key, until another one is saved',
    async run(store, reopen) {
      assert.equal(await store.key('a'), undefined)
      const first = await Promise.all(['1', '2', '3'].map((value) => store.keyOnce('a', value)))
      assert.deepEqual(first, ['1', '1', '1'])
      await store.keyOnce('__proto__', 'p')
      await store.saveKey('b', 'x')
      await store.saveKey('b', 'y')
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await Promise.all(['a', 'b', '__proto__'].map((name) => seen.key(name))), ['1', 'y', 'p'])
    },
  },
  {
    name: 'keeps subscriptions in their first order, each once',
    async run(store, reopen) {
      await store.saveSubscription(subscription('1'))
      await store.saveSubscription(subscription('2', { principal: 'ann', owner: 'o', allowedProfiles: [], events: [] }))
      await store.saveSubscription(subscription('3'))
      await store.saveSubscription(subscription('1', { expiresAt: 9 }))
      await store.removeSubscription('3')
      await store.removeSubscription('nobody')
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.subscriptions(), [
        subscription('1', { expiresAt: 9 }),
        subscription('2', { principal: 'ann', owner: 'o', allowedProfiles: [], events: [] }),
      ])
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(store) {
      const mine = subscription('1')
      await store.saveSubscription(mine)
      mine.keys.auth = 'changed'
      for (const theirs of await store.subscriptions()) theirs.keys.auth = 'changed'
      assert.deepEqual(await store.subscriptions(), [subscription('1')])
    },
  },
  versionCase((store) => [
    () => store.saveSubscription(subscription('1')),
    () => store.saveSubscription(subscription('1', { expiresAt: 9 })),
    () => store.removeSubscription('1'),
  ]),
]
