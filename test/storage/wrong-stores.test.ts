import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { KeptNotification, NotificationStore } from '../../src/notifications/store.js'
import { notificationStoreConformance } from '../../src/notifications/store-conformance.js'
import type { ProfileStore } from '../../src/profiles/store.js'
import { profileStoreConformance } from '../../src/profiles/store-conformance.js'
import type { ReadEvent, SessionJournal } from '../../src/sessions/kept/journal.js'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import type { ParkedSessionRecord } from '../../src/sessions/kept/store.js'
import { sessionStoreConformance } from '../../src/sessions/kept/store-conformance.js'
import { createMemoryNotificationStore } from '../../src/storage/memory/notification-store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { createMemorySessionJournal } from '../../src/storage/memory/session-journal.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { GatewayStorage } from '../../src/storage/storage.js'
import { gatewayStorageConformance } from '../../src/storage/storage-conformance.js'
import { failed } from '../fixtures/failed-cases.js'

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
