import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { IdempotencyStore } from '../../src/idempotency/store.js'
import { type IdempotencyStoreWorld, idempotencyStoreConformance } from '../../src/idempotency/store-conformance.js'
import { isAsExpected, type JobFilter, type JobPatch, type QueueAdapter } from '../../src/jobs/adapter.js'
import { queueAdapterConformance } from '../../src/jobs/adapter-conformance.js'
import type { ConformanceCase } from '../../src/lib/conformance.js'
import type { KeptNotification, NotificationStore } from '../../src/notifications/store.js'
import { notificationStoreConformance } from '../../src/notifications/store-conformance.js'
import type { ProfileStore } from '../../src/profiles/store.js'
import { profileStoreConformance } from '../../src/profiles/store-conformance.js'
import type { ReadEvent, SessionJournal } from '../../src/sessions/kept/journal.js'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import type { ParkedSessionRecord } from '../../src/sessions/kept/store.js'
import { sessionStoreConformance } from '../../src/sessions/kept/store-conformance.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { createMemoryIdempotencyStore } from '../../src/storage/memory/idempotency-store.js'
import { createMemoryNotificationStore } from '../../src/storage/memory/notification-store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { createMemorySessionJournal } from '../../src/storage/memory/session-journal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { createMemoryUsageStore } from '../../src/storage/memory/usage-store.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { gatewayStorageConformance } from '../../src/storage/storage-conformance.js'
import type { UsageCount, UsageStore } from '../../src/usage/store.js'
import { usageStoreConformance } from '../../src/usage/store-conformance.js'
import type { DeliveryOutbox } from '../../src/webhooks/outbox.js'
import { deliveryOutboxConformance } from '../../src/webhooks/outbox-conformance.js'

/** Names of the cases that a part does not pass, each run on a new one. */
async function failed<Part>(cases: readonly ConformanceCase<Part>[], make: () => Part): Promise<string[]> {
  const names: string[] = []
  for (const { name, run } of cases) await run(make()).catch(() => names.push(name))
  return names
}

const SHARES = /^is not affected by what happens to what it took or gave$/

t.test('a journal that gives its own events away', async (t) => {
  const make = (): SessionJournal => {
    const journal = createMemorySessionJournal()
    const own = new Map<string, ReadEvent>()
    const read: SessionJournal['read'] = async (id, ...place) =>
      (await journal.read(id, ...place)).map((event) => {
        const key = JSON.stringify([id, event])
        own.set(key, own.get(key) ?? event)
        return own.get(key)!
      })
    return { ...journal, read }
  }
  t.match(await failed(sessionJournalConformance, make), [SHARES])
})

t.test('a journal that gives an event twice, or loses the last one', async (t) => {
  const reading = (read: (journal: SessionJournal) => SessionJournal['read']) => () => {
    const journal = createMemorySessionJournal()
    return { ...journal, read: read(journal) }
  }
  const twice = reading(
    (journal) =>
      (id, after, ...rest) =>
        journal.read(id, Math.max(0, after - 1), ...rest),
  )
  const lost = reading(
    (journal) =>
      (id, after, until, ...rest) =>
        journal.read(id, after, Math.min(until, 5), ...rest),
  )
  for (const make of [twice, lost])
    t.ok(
      (await failed(sessionJournalConformance, make)).includes(
        'reads in pages of about so many bytes, of at least one event',
      ),
    )
})

t.test('a journal that takes one which is awake for one that sleeps', async (t) => {
  const make = (): SessionJournal => {
    const journal = createMemorySessionJournal()
    const gone = new Set<string>()
    const known = new Map<string, string>()
    return {
      ...journal,
      async write(write) {
        await journal.write(write)
        if (write.asleep?.sdkSessionId !== undefined) known.set(write.asleep.sdkSessionId, write.id)
      },
      async remove(id, ...along) {
        await journal.remove(id, ...along)
        gone.add(id)
      },
      continues: async (sdkSessionId) => known.has(sdkSessionId) && !gone.has(known.get(sdkSessionId)!),
    }
  }
  t.match(await failed(sessionJournalConformance, make), [/knows what it goes on from/])
})

t.test('an adapter that still has a job which was removed', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const removed = new Map<string, Awaited<ReturnType<QueueAdapter['get']>>>()
    return {
      ...adapter,
      async remove(id) {
        removed.set(id, removed.get(id) ?? (await adapter.get(id)))
        await adapter.remove!(id)
      },
      get: async (id) => removed.get(id) ?? adapter.get(id),
    }
  }
  t.match(await failed(queueAdapterConformance, make), [/^removes a job as if it had never been/])
})

t.test('an adapter that does not keep what the queue notes of an attempt', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const update: QueueAdapter['update'] = (id, { notes, ...patch }, ...more) => {
      const { attempt: _attempt, ...kept } = notes ?? {}
      return adapter.update(id, { ...patch, ...(notes && { notes: kept }) }, ...more)
    }
    return { ...adapter, update }
  }
  t.match(await failed(queueAdapterConformance, make), [/^keeps all that a job goes on with/])
})

t.test('an adapter that looks at a job first, and changes it then', async (t) => {
  const make = (): QueueAdapter => {
    const adapter = createMemoryQueueAdapter()
    const update: QueueAdapter['update'] = async (id, patch, expected, ...more) => {
      const found = await adapter.get(id)
      if (!found || !isAsExpected(expected, found.info.status, found.rev)) return null
      return adapter.update(id, patch, undefined, ...more)
    }
    return { ...adapter, update }
  }
  t.match(await failed(queueAdapterConformance, make), [/^lets one of two changes through/])
})

t.test('an adapter that takes no profile for any, or lists only so many', async (t) => {
  const listing = (change: (filter: JobFilter) => JobFilter) => () => {
    const adapter = createMemoryQueueAdapter()
    return { ...adapter, list: (filter: JobFilter = {}) => adapter.list(change(filter)) }
  }
  const none = listing(({ profiles, ...filter }) => ({ ...filter, ...(profiles?.length && { profiles }) }))
  t.match(await failed(queueAdapterConformance, none), [/^lists newest first, by status, by profile/])
  const few = listing((filter) => ({ limit: 100, ...filter }))
  t.match(await failed(queueAdapterConformance, few), [/^lists all/])
  const one = listing(({ status, ...filter }) => ({ ...filter, ...(status && { status: status.slice(0, 1) }) }))
  t.match(await failed(queueAdapterConformance, one), [/^lists newest first, by status, by profile/])
})

t.test('an adapter whose numbers, texts or settled attempts are cut off', async (t) => {
  const changed = (change: (adapter: QueueAdapter) => Partial<QueueAdapter>) => () => {
    const adapter = createMemoryQueueAdapter()
    return { ...adapter, ...change(adapter) }
  }
  const unsigned = changed(({ addDailyTokens }) => ({
    addDailyTokens: (day, tokens) => addDailyTokens(day, Math.max(0, tokens)),
  }))
  const narrow = changed(({ addDailyTokens }) => ({ addDailyTokens: (day, tokens) => addDailyTokens(day, tokens | 0) }))
  for (const make of [unsigned, narrow])
    t.match(await failed(queueAdapterConformance, make), [/^counts tokens per day/])
  const short = changed(({ add }) => ({
    add: ({ info, request: { session, ...request } }) =>
      add({ info, request: { ...request, session: { ...session, prompt: session.prompt.slice(0, 65_535) } } }),
  }))
  t.match(await failed(queueAdapterConformance, short), [/^keeps a record as it was/])
  const sparse = changed(({ settle }) => ({
    settle: (id, { status, finishedAt }, ...more) => settle!(id, { ...{ status, finishedAt } } as JobPatch, ...more),
  }))
  t.match(await failed(queueAdapterConformance, sparse), [/^settles an attempt/])
})

t.test('a store of parked sessions, and a journal, that know of some fields only', async (t) => {
  const known = [
    'config',
    'decisions',
    'executions',
    'generation',
    'hasNews',
    'id',
    'info',
    'log',
    'parkedAt',
    'profile',
  ]
  const some = new Set([...known, 'permissions', 'results', 'settled', 'snapshot', 'queued', 'interrupted'])
  class KnowsSome extends MemorySessionStore {
    override save(record: ParkedSessionRecord): Promise<void> {
      const fields = Object.entries(record).filter(([name]) => some.has(name))
      return super.save(Object.fromEntries(fields) as unknown as ParkedSessionRecord)
    }
  }
  t.same(await failed(sessionStoreConformance, () => new KnowsSome()), ['keeps every field as it was'])
  const makeJournal = (): SessionJournal => {
    const journal = createMemorySessionJournal()
    const write: SessionJournal['write'] = ({ state, ...rest }) => {
      const { turnUsage: _turnUsage, ...kept } = state ?? {}
      return journal.write({ ...rest, ...(state && { state: kept as typeof state }) })
    }
    return { ...journal, write }
  }
  t.match(await failed(sessionJournalConformance, makeJournal), [/^keeps every field/, /^replaces state and snapshot/])
})

t.test('a store of parked sessions that cuts off what is long, lists only so many, or mixes up capitals', async (t) => {
  class CutsOff extends MemorySessionStore {
    override save(record: ParkedSessionRecord): Promise<void> {
      const { events, ...log } = record.log
      return super.save({ ...record, log: { ...log, events: events.slice(0, 65_535) } })
    }
  }
  t.same(await failed(sessionStoreConformance, () => new CutsOff()), ['keeps a large record whole'])
  class ListsFew extends MemorySessionStore {
    override list = async () => (await super.list()).slice(0, 100)
  }
  t.match(await failed(sessionStoreConformance, () => new ListsFew()), [/^takes many records at once/])
  class DeletesAlike extends MemorySessionStore {
    override async delete(id: string): Promise<void> {
      for (const one of await super.list()) if (one.id.toLowerCase() === id.toLowerCase()) await super.delete(one.id)
    }
  }
  t.match(await failed(sessionStoreConformance, () => new DeletesAlike()), [/^tells ids apart/])
})

t.test(
  'a store of profiles that looks first and replaces then, cuts off what is long, or mixes up capitals',
  async (t) => {
    const changed = (change: (store: ProfileStore) => Partial<ProfileStore>) => () => {
      const store = createMemoryProfileStore()
      return { ...store, ...change(store) }
    }
    const looks = changed(({ list, save }) => ({
      async replace(profile, before) {
        const found = (await list()).find(({ name }) => name === before.name)
        if (!isDeepStrictEqual(found, before)) return false
        await new Promise(setImmediate)
        await save(profile)
        return true
      },
    }))
    t.match(await failed(profileStoreConformance, looks), [/^replaces exactly what was there before/])
    const short = changed(({ save }) => ({
      save: ({ session: { instructions, ...session } = {}, ...profile }) =>
        save({
          ...profile,
          ...(instructions !== undefined && { session: { ...session, instructions: instructions.slice(0, 65_535) } }),
        }),
    }))
    t.match(await failed(profileStoreConformance, short), [/^keeps every field as it was/])
    const alike = changed((store) => ({
      async delete(name) {
        for (const one of await store.list())
          if (one.name.toLowerCase() === name.toLowerCase()) await store.delete(one.name)
      },
    }))
    t.match(await failed(profileStoreConformance, alike), [/^takes names exactly/])
  },
)

t.test('a feed that keeps what it was given as it is by now', async (t) => {
  const make = (): NotificationStore => {
    const store = createMemoryNotificationStore()
    const given = new Map<number, KeptNotification>()
    return {
      ...store,
      async add(kept) {
        given.set(kept.number, kept)
        await store.add(kept)
      },
      read: async (...asked) => (await store.read(...asked)).map((one) => given.get(one.number)!),
    }
  }
  t.match(await failed(notificationStoreConformance, make), [SHARES])
})

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

t.test('a storage that gives a key to a new request which an earlier process has left', async (t) => {
  const names: string[] = []
  for (const { name, run } of gatewayStorageConformance) {
    const inner = createMemoryStorage()
    const left = new Set<string>()
    const { idempotency } = inner
    const storage: GatewayStorage = {
      ...inner,
      idempotency: {
        ...idempotency,
        begin: async (key, fingerprint) => (left.has(key) ? { state: 'new' } : idempotency.begin(key, fingerprint)),
        async left() {
          const found = await idempotency.left!()
          for (const { key } of found) left.add(key)
          return found
        },
        async complete(key, answer) {
          left.delete(key)
          await idempotency.complete(key, answer)
        },
        async release(key) {
          left.delete(key)
          await idempotency.release(key)
        },
      },
    }
    const reopen = async () => {
      await storage.open()
      return storage
    }
    await run(storage, reopen).catch(() => names.push(name))
  }
  t.same(names, ['keeps a key with what its request makes, to be answered by the next process'])
})
