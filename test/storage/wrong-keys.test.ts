import t from 'tap'
import type { IdempotencyStore } from '../../src/idempotency/store.js'
import { type IdempotencyStoreWorld, idempotencyStoreConformance } from '../../src/idempotency/store-conformance.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { createMemoryIdempotencyStore } from '../../src/storage/memory/idempotency-store.js'
import { createMemoryUsageStore } from '../../src/storage/memory/usage-store.js'
import type { UsageCount, UsageStore } from '../../src/usage/store.js'
import { usageStoreConformance } from '../../src/usage/store-conformance.js'
import type { DeliveryOutbox } from '../../src/webhooks/outbox.js'
import { deliveryOutboxConformance } from '../../src/webhooks/outbox-conformance.js'
import { failed } from '../fixtures/failed-cases.js'

const SHARES = /^is not affected by what happens to what it took or gave$/

t.test('a usage store that makes one key of two', async (t) => {
  const make = (): UsageStore => {
    const store = createMemoryUsageStore()
    let last: string[] = []
    return {
      ...store,
      // as one that remembers the sum of the last count by less than its key
      add: (counts) =>
        store.add(
          counts.map((count) => {
            const profile = last[0] === `${count.day} ${count.agent} ${count.person}` ? last[1]! : count.profile
            last = [`${count.day} ${count.agent} ${count.person}`, profile]
            return { ...count, profile }
          }),
        ),
    }
  }
  t.match(await failed(usageStoreConformance, make), [/^tells keys apart/])
})

t.test('a usage store that drops a number, has 32 bits for it, rounds, or loses what is added at once', async (t) => {
  const adding = (change: (count: UsageCount) => Partial<UsageCount>) => () => {
    const store = createMemoryUsageStore()
    return {
      ...store,
      add: (counts: readonly UsageCount[]) => store.add(counts.map((one) => ({ ...one, ...change(one) }))),
    }
  }
  const whole = /^keeps each number for itself/
  t.match(
    await failed(
      usageStoreConformance,
      adding(() => ({ jobs: 0 })),
    ),
    [whole],
  )
  const mixedUp = ({ cacheReadTokens = 0, cacheCreationTokens = 0 }: UsageCount) => ({
    ...{ cacheReadTokens: cacheCreationTokens, cacheCreationTokens: cacheReadTokens },
  })
  t.match(await failed(usageStoreConformance, adding(mixedUp)), [whole])
  t.match(
    await failed(
      usageStoreConformance,
      adding(({ turns = 0 }) => ({ turns: turns | 0 })),
    ),
    [whole],
  )
  const cents = ({ costUsd = 0 }: UsageCount) => ({ costUsd: Math.round(costUsd * 100) / 100 })
  t.match(await failed(usageStoreConformance, adding(cents)), [whole])
  const readsFirst = (): UsageStore => {
    let kept: readonly UsageCount[] = []
    return {
      async add(counts) {
        const before = kept
        await new Promise(setImmediate)
        kept = [...before, ...structuredClone(counts)]
      },
      async read(...asked) {
        const now = createMemoryUsageStore()
        await now.add(kept)
        return now.read(...asked)
      },
    }
  }
  t.match(await failed(usageStoreConformance, readsFirst), [/^loses nothing of what is added at once/])
})

t.test('a store of keys that takes one key for others, cuts off answers, or gives its own away', async (t) => {
  const failedOf = async (change: (store: IdempotencyStore) => Partial<IdempotencyStore>) => {
    const names: string[] = []
    for (const { name, run } of idempotencyStoreConformance) {
      let now = 1_760_000_000_000
      const store = createMemoryIdempotencyStore({ now: () => now })
      const pass: IdempotencyStoreWorld['pass'] = (ms) => {
        now += ms
      }
      await run({ store: { ...store, ...change(store) }, pass }).catch(() => names.push(name))
    }
    return names
  }
  const keys = new Set<string>()
  const freesAll = (store: IdempotencyStore): Partial<IdempotencyStore> => ({
    begin(key, fingerprint) {
      keys.add(key)
      return store.begin(key, fingerprint)
    },
    async release() {
      for (const key of keys) await store.release(key)
    },
  })
  t.match(await failedOf(freesAll), [/^answers and frees the key that is named/])
  const answersAlike = (store: IdempotencyStore): Partial<IdempotencyStore> => ({
    begin(key, fingerprint) {
      keys.add(key)
      return store.begin(key, fingerprint)
    },
    async complete(_key, answer) {
      for (const key of keys) await store.complete(key, answer)
    },
  })
  t.ok((await failedOf(answersAlike)).includes('answers and frees the key that is named, and no other'))
  const cutsOff = (store: IdempotencyStore): Partial<IdempotencyStore> => ({
    complete: (key, answer) => store.complete(key, { ...answer, body: answer.body.slice(0, 65_535) }),
  })
  t.match(await failedOf(cutsOff), [/^remembers the answer as it was/])
  const shares = (store: IdempotencyStore): Partial<IdempotencyStore> => {
    const own = new Map<string, Awaited<ReturnType<IdempotencyStore['begin']>>>()
    return {
      async begin(key, fingerprint) {
        const state = await store.begin(key, fingerprint)
        if (state.state !== 'answered') return state
        own.set(key, own.get(key) ?? state)
        return own.get(key)!
      },
    }
  }
  t.match(await failedOf(shares), [SHARES])
})

t.test(
  'an outbox that cuts off what is long, mixes up capitals, drops a member, or keeps what it was given',
  async (t) => {
    const changed = (change: (outbox: DeliveryOutbox) => Partial<DeliveryOutbox>) => (): DeliveryOutbox => {
      const outbox = createMemoryDeliveryOutbox()
      return { ...outbox, ...change(outbox) }
    }
    const cutsOff = changed((outbox) => ({
      add(kept) {
        const { body } = kept.delivery as { body?: unknown }
        const short = typeof body === 'string' && { body: body.slice(0, 65_535) }
        return outbox.add({ ...kept, delivery: { ...kept.delivery, ...short } })
      },
    }))
    t.match(await failed(deliveryOutboxConformance, cutsOff), [/^keeps a delivery as it was/])
    const removesAlike = changed((outbox) => ({
      async remove(lane, id) {
        for (const one of await outbox.list())
          if (`${one.lane}/${one.id}`.toLowerCase() === `${lane}/${id}`.toLowerCase())
            await outbox.remove(one.lane, one.id)
      },
    }))
    t.match(await failed(deliveryOutboxConformance, removesAlike), [/^removes the one that is named/])
    const forgetsAlike = changed((outbox) => ({
      async forget(lane) {
        for (const one of new Set([lane, `${lane}0`, lane.toUpperCase()])) await outbox.forget(one)
      },
    }))
    t.match(await failed(deliveryOutboxConformance, forgetsAlike), [/^forgets the attempts of a lane/])
    const drops = changed((outbox) => ({ log: (lane, { channel: _dropped, ...attempt }) => outbox.log(lane, attempt) }))
    t.ok(
      (await failed(deliveryOutboxConformance, drops)).includes(
        'gives the attempts of a lane newest first, and keeps the last hundred',
      ),
    )
    const keepsGiven = changed((outbox) => {
      const given = new Map<string, object>()
      return {
        change(kept) {
          given.set(`${kept.lane}/${kept.id}`, kept.delivery)
          return outbox.change!(kept)
        },
        list: async () =>
          (await outbox.list()).map((one) => ({
            ...one,
            delivery: given.get(`${one.lane}/${one.id}`) ?? one.delivery,
          })),
      }
    })
    t.ok(
      (await failed(deliveryOutboxConformance, keepsGiven)).includes(
        'is not affected by what happens to what it took or gave',
      ),
    )
  },
)
