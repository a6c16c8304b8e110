import assert from 'node:assert/strict'
import type { ConformanceCase } from '../lib/conformance.js'
import type { KeptNotification, NotificationRange, NotificationStore } from './store.js'

/** One thing that every NotificationStore does. */
export type NotificationStoreCase = ConformanceCase<NotificationStore>

const TS = 1_760_000_000_000

const kept = (number: number, given: Partial<KeptNotification> = {}): KeptNotification => ({
  ...{ number, type: 'turn_completed', sessionId: 'one', profile: 'work', ts: TS + number },
  json: JSON.stringify({ id: `e:${number}`, preview: 'Zwölf "Boxkämpfer"\n\u2028 🥊' }),
  ...given,
})
const ALL: NotificationRange = { after: 0, until: Number.MAX_SAFE_INTEGER, since: 0 }
const PAGE = { limit: 200, maxBytes: 1024 * 1024 }

async function numbers(store: NotificationStore, range: Partial<NotificationRange> = {}, page = {}): Promise<number[]> {
  return (await store.read({ ...ALL, ...range }, { ...PAGE, ...page })).map(({ number }) => number)
}

/** For authors of storages: run every case on a new, empty store. The bundled stores run the same ones. */
export const notificationStoreConformance: readonly NotificationStoreCase[] = [
  {
    name: 'is empty at first, and keeps the identity that it was given first',
    async run(store, reopen) {
      assert.deepEqual(await store.open('first'), { epoch: 'first', lastNumber: 0 })
      assert.deepEqual(await numbers(store), [])
      assert.equal(await store.oldest(0), undefined)
      await store.prune(10, TS)
      const again = reopen ? await reopen() : store
      assert.deepEqual(await again.open('second'), { epoch: 'first', lastNumber: 0 })
    },
  },
  {
    name: 'keeps a notification as it was',
    async run(store, reopen) {
      await store.open('e')
      await store.add(kept(7))
      const again = reopen ? await reopen() : store
      assert.deepEqual(await again.read(ALL, PAGE), [kept(7)])
      assert.deepEqual(await again.open('other'), { epoch: 'e', lastNumber: 7 })
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(store) {
      const mine = kept(2)
      await store.add(mine)
      const early = kept(1)
      await store.add(early)
      for (const one of [mine, early]) one.profile = 'changed'
      for (const theirs of await store.read(ALL, PAGE)) theirs.json = '"changed"'
      assert.deepEqual(await store.read(ALL, PAGE), [kept(1), kept(2)])
    },
  },
  {
    name: 'reads in the order of the numbers, whatever the order of adding',
    async run(store) {
      for (const number of [2, 1, 5, 3]) await store.add(kept(number))
      assert.deepEqual(await numbers(store), [1, 2, 3, 5])
      assert.deepEqual(await numbers(store, { after: 1, until: 3 }), [2, 3])
      assert.deepEqual(await numbers(store, {}, { limit: 2 }), [1, 2])
      assert.deepEqual(await numbers(store, { until: 4 }, { limit: 2, newest: true }), [2, 3])
    },
  },
  {
    name: 'reads what is asked for, and nothing else',
    async run(store) {
      await store.add(kept(1, { profile: 'work' }))
      await store.add(kept(2, { profile: "o'hara", type: 'permission_requested' }))
      await store.add(kept(3, { profile: 'work', type: 'session_closed' }))
      assert.deepEqual(await numbers(store, { profiles: ["o'hara"] }), [2])
      assert.deepEqual(await numbers(store, { profiles: [] }), [])
      assert.deepEqual(await numbers(store, { types: ['permission_requested', 'session_closed'] }), [2, 3])
      assert.deepEqual(await numbers(store, { types: ['session_closed'], profiles: ["o'hara"] }), [])
      assert.deepEqual(await numbers(store, { since: TS + 2 }), [2, 3])
      assert.equal(await store.oldest(TS + 2), 2)
      assert.equal(await store.oldest(TS + 4), undefined)
    },
  },
  {
    name: 'ends a page at as many bytes, and not before the first',
    async run(store) {
      const json = JSON.stringify('x'.repeat(1000))
      for (let number = 1; number <= 60; number++) await store.add(kept(number, { json }))
      const some = await numbers(store, {}, { maxBytes: 30_000 })
      assert.deepEqual(
        some,
        Array.from({ length: 29 }, (_, index) => index + 1),
      )
      assert.deepEqual(await numbers(store, {}, { maxBytes: 10 }), [1])
      assert.deepEqual(await numbers(store, {}, { maxBytes: 10, newest: true }), [60])
      assert.equal((await numbers(store)).length, 60)
    },
  },
  {
    name: 'forgets by number and by age, and never gives a number again',
    async run(store, reopen) {
      await store.open('e')
      for (let number = 1; number <= 6; number++) await store.add(kept(number))
      await store.prune(2, 0)
      assert.deepEqual(await numbers(store), [3, 4, 5, 6])
      await store.prune(0, TS + 5)
      assert.deepEqual(await numbers(store), [5, 6])
      await store.prune(6, 0)
      const again = reopen ? await reopen() : store
      assert.deepEqual(await numbers(again), [])
      assert.deepEqual(await again.open('other'), { epoch: 'e', lastNumber: 6 })
    },
  },
  {
    name: 'forgets a great many, of which it has none when it says so',
    async run(store) {
      await store.open('e')
      await Promise.all(Array.from({ length: 3_100 }, (_, index) => store.add(kept(index + 1))))
      await store.prune(1_050, 0)
      assert.equal(await store.oldest(0), 1_051)
      await store.prune(1_060, TS + 2_101)
      assert.equal(await store.oldest(0), 2_101)
      await store.shared?.keepNewest(7)
      await store.prune(3_093, 0)
      assert.deepEqual(await numbers(store), [3_094, 3_095, 3_096, 3_097, 3_098, 3_099, 3_100])
    },
  },
  {
    name: 'forgets by age what was told while the clock had gone back',
    async run(store) {
      await store.open('e')
      for (const number of [1, 2, 3]) await store.add(kept(number))
      await store.add({ ...kept(4), ts: TS })
      // written after the one that follows it
      await store.add(kept(6))
      await store.add({ ...kept(5), ts: TS + 9 })
      await store.prune(0, TS + 3)
      assert.deepEqual(await numbers(store), [3, 5, 6])
      await store.prune(0, TS + 8)
      assert.deepEqual(await numbers(store), [5])
    },
  },
  {
    name: 'gives what is to be placed when it is kept a place after all others, and finds it by its number, if several processes have it',
    async run(store) {
      const { shared } = store
      if (!shared) return
      const placed = (number: number) => ({ ...kept(number), isPlacedWhenKept: true as const })
      await store.open('e')
      await store.add(kept(3))
      await store.add(placed(900))
      // given before the other, and written after it
      await store.add(placed(500))
      await store.add(placed(1_000))
      const found = await store.read(ALL, PAGE)
      assert.deepEqual(
        found.map(({ json }) => JSON.parse(json).id),
        ['e:3', 'e:900', 'e:500', 'e:1000'],
      )
      const places = found.map(({ number }) => number)
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
      )
      assert.deepEqual(await shared.placeOf(500), { place: places[2], forgotten: 0 })
      assert.deepEqual(await numbers(store, { after: places[1]! }), places.slice(2))
      await shared.keepNewest(2)
      assert.deepEqual(await numbers(store), places.slice(2))
      assert.deepEqual(await shared.placeOf(900), { place: undefined, forgotten: places[1] })
      assert.equal(await store.oldest(0), places[2])
      assert.equal((await store.open('e')).lastNumber, places[3])
    },
  },
]
