import t from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { persistently } from '../../src/lib/patience.js'
import { UNLIMITED } from '../../src/principal.js'
import { refusing, StorageWatch } from '../../src/storage/availability.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type GatewayStorage, StorageError } from '../../src/storage/storage.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { testStorage } from '../fixtures/journaled.js'
import { turns } from '../fixtures/turns.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const watched = (storage: GatewayStorage) =>
  new StorageWatch(storage, { clock: new VirtualClock(), logger: silentLogger })

t.test('what throws before it gives a promise has refused, as what rejects', async (t) => {
  const memory = createMemoryStorage()
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, {
    write: {
      value: () => {
        throw new Error('it is closed')
      },
    },
  })
  const watch = watched({ ...memory, journal })
  t.equal(watch.available, true)
  await t.rejects(watch.storage.journal.write({ id: 'one' }), { message: 'it is closed' })
  t.equal(watch.available, false)
})

t.test(
  'two that write what it takes, and then what it refuses, do not have each other try again without a pause',
  async (t) => {
    const memory = createMemoryStorage()
    const clock = new VirtualClock()
    const journal: GatewayStorage['journal'] = Object.create(memory.journal, {
      write: { value: () => Promise.reject(new Error('disk full')) },
    })
    // it takes longer to take something than to refuse it
    const release = () => new Promise<void>((done) => setImmediate(() => setImmediate(done)))
    const idempotency: GatewayStorage['idempotency'] = Object.create(memory.idempotency, {
      release: { value: release },
    })
    const { storage, retryAfter } = new StorageWatch(
      { ...memory, journal, idempotency },
      { clock, logger: silentLogger },
    )
    let tries = 0
    const inTwoSteps = async () => {
      tries++
      await storage.idempotency.release('k')
      await storage.journal.write({ id: 'one' })
    }
    void persistently(inTwoSteps, { logger: silentLogger, retryAfter })
    await clock.advance(100)
    void persistently(inTwoSteps, { logger: silentLogger, retryAfter })
    await turns(500)
    const atOnce = tries
    for (let step = 0; step < 100; step++) {
      await clock.advance(100)
      await turns(10)
    }
    await storage.close()
    t.ok(atOnce < 20, `${atOnce} tries without a pause`)
    t.ok(tries - atOnce > 20 && tries - atOnce < 100, `${tries - atOnce} more in ten seconds`)
  },
)

t.test('one that takes some and refuses the rest is told of ever more seldom', async (t) => {
  const memory = createMemoryStorage()
  const clock = new VirtualClock()
  let isFull = true
  const refuseLarge = () => (isFull ? Promise.reject(new Error('disk full')) : Promise.resolve())
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, { write: { value: refuseLarge } })
  const failures: { err?: Error; reason?: string }[] = []
  let recoveries = 0
  const logger = { ...silentLogger, error: (line: object) => void failures.push(line), warn: () => void recoveries++ }
  const watch = new StorageWatch({ ...memory, journal }, { clock, logger })
  const { storage, retryAfter } = watch
  let tries = 0
  let isDone = false
  const write = () =>
    storage.journal.write({ id: 'one' }).then(
      () => {
        isDone = true
      },
      () => {
        tries++
        retryAfter(3_600_000, write)
      },
    )
  await write()
  // what is small is taken, ten times a second for a minute
  for (let at = 0; at < 60_000; at += 100) {
    await storage.idempotency.release('k')
    await clock.advance(100)
  }
  t.ok(
    tries >= 50 && tries < 80,
    `whoever waits for it tries again at once at first, and then once a second: ${tries} times`,
  )
  t.equal(failures.length, 9, 'three as any, and then after 1, 2, 4, 8 and 16 s')
  t.match(failures.at(-1), { reason: 'disk full', err: undefined })
  t.equal(recoveries, 3, 'and that it takes something is not told of each time either')
  isFull = false
  await storage.idempotency.release('k')
  await clock.advance(1_000)
  t.ok(isDone && watch.available, 'it is relied on within a second')
  t.equal(recoveries, 3)
  await clock.advance(30_000)
  t.equal(recoveries, 4, 'and told of once it has not failed for a while')
})

t.test('one that takes some meanwhile is asked again once a second, however long it takes to answer', async (t) => {
  const memory = createMemoryStorage()
  const clock = new VirtualClock()
  const asked: ((error: Error) => void)[] = []
  const probe = () => new Promise<void>((_, reject) => void asked.push(reject))
  const full = new Error('disk full')
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, {
    write: { value: () => Promise.reject(full) },
  })
  const { storage } = new StorageWatch({ ...memory, journal, probe }, { clock, logger: silentLogger })
  await t.rejects(storage.journal.write({ id: 'one' }))
  await clock.advance(1_000)
  t.equal(asked.length, 1)
  // something small is taken, and something large refused
  await storage.idempotency.release('k')
  await t.rejects(storage.journal.write({ id: 'one' }))
  asked.shift()!(full)
  await clock.advance(0)
  await clock.advance(1_000)
  t.equal(asked.length, 1)
})

t.test('one that comes and goes is told of with its reason, and not as one that is full', async (t) => {
  const memory = createMemoryStorage()
  const said: [line: { reason?: string }, message: string][] = []
  const logger = { ...silentLogger, error: (line: object, message = '') => void said.push([line, message]) }
  let cut = (_error: StorageError) => {}
  const onAway = (listener: typeof cut) => {
    cut = listener
  }
  const { storage } = new StorageWatch({ ...memory, onAway }, { clock: new VirtualClock(), logger })
  await storage.open()
  for (let times = 0; times < 4; times++) {
    cut(new StorageError('POSTGRES_UNREACHABLE', 'db.example cannot be reached'))
    await storage.idempotency.release('k')
  }
  const [line, message] = said.at(-1)!
  t.match(line, { reason: 'db.example cannot be reached' })
  t.match(message, /again and again/)
  t.notMatch(message, /room|takes some/)
})

t.test('what gives no promise, as it is done by then, is taken', async (t) => {
  const memory = createMemoryStorage()
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, {
    write: { value: (...given: Parameters<typeof memory.journal.write>) => void memory.journal.write(...given) },
  })
  const { registry } = await buildGateway(t, { storage: { ...memory, journal } })
  const { id } = await registry.create({ cwd: SOME_CWD })
  t.match(await memory.journal.list(), [{ id }])
})

t.test('a probe that is done when it returns, or throws by then, is one all the same', async (t) => {
  const memory = createMemoryStorage()
  const clock = new VirtualClock()
  let isFull = true
  const act = () => {
    if (isFull) throw new Error('no space left on device')
  }
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, { write: { value: act } })
  const given = { ...memory, journal, probe: act as unknown as () => Promise<void> }
  const watch = new StorageWatch(given, { clock, logger: silentLogger })
  await t.rejects(watch.storage.journal.write({ id: 'one' }))
  await clock.advance(1_000)
  t.equal(watch.available, false)
  isFull = false
  await clock.advance(1_000)
  t.equal(watch.available, true)
})

t.test('what a host throws instead of listening for work is not swallowed', async (t) => {
  const memory = createMemoryStorage()
  const queue: GatewayStorage['queue'] = Object.create(memory.queue, {
    onWork: {
      value: () => {
        throw new Error('no connection')
      },
    },
  })
  t.throws(() => watched({ ...memory, queue }).storage.queue.onWork!(() => {}), { message: 'no connection' })
})

t.test('a storage whose parts nobody can replace is watched as any other', async (t) => {
  const memory = createMemoryStorage()
  class Hosts {
    readonly profiles = memory.profiles
    readonly queue = memory.queue
    readonly idempotency = memory.idempotency
    readonly outbox = memory.outbox
    get journal() {
      return memory.journal
    }
    open() {
      return memory.open()
    }
    close() {
      return memory.close()
    }
  }
  for (const storage of [Object.freeze({ ...memory }), new Hosts()]) {
    const watch = watched(storage)
    await watch.storage.open()
    t.not(watch.storage.journal, memory.journal)
    t.same(await watch.storage.profiles.list(), [])
    await watch.storage.close()
  }
})

t.test('nor need anything of them be replaced: all of it may be frozen', async (t) => {
  const parts = Object.entries(createMemoryStorage()).map(([name, part]) => [name, Object.freeze(part)])
  const storage: GatewayStorage = Object.freeze(Object.fromEntries(parts))
  const { registry } = await buildGateway(t, { storage })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.durable(id)
  t.ok(await storage.journal.get(id))
})

t.test('what it rejects with may be anything: also what cannot be asked what it is', async (t) => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const memory = createMemoryStorage()
  const idempotency: GatewayStorage['idempotency'] = Object.create(memory.idempotency, {
    release: { value: () => Promise.reject(proxy) },
  })
  const options = { clock: new VirtualClock(), logger: silentLogger }
  const watch = new StorageWatch({ ...memory, idempotency }, options)
  await t.rejects(refusing(watch.storage.idempotency).release('k'), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  t.equal(watch.available, false)
})

t.test(
  'what one that waited for the storage calls off is not done, and what it begins to wait for is not done at once',
  async (t) => {
    const given = createMemoryStorage()
    const { storage, retryAfter } = new StorageWatch(given, { clock: new VirtualClock(), logger: silentLogger })
    const { release } = given.idempotency
    given.idempotency.release = () => Promise.reject(new Error('no space left on device'))
    await t.rejects(storage.idempotency.release('k'))
    const done: string[] = []
    retryAfter(60_000, () => {
      done.push('first')
      second.cancel()
      retryAfter(60_000, () => done.push('again'))
    })
    const second = retryAfter(60_000, () => done.push('second'))
    retryAfter(60_000, () => done.push('third'))
    given.idempotency.release = release
    await storage.idempotency.release('k')
    await new Promise(setImmediate)
    t.same(done, ['first', 'third'])
  },
)

t.test('what a query builder gives is a promise as any other, and refuses as one', async (t) => {
  // biome-ignore lint/suspicious/noThenProperty: it is what makes it one
  const query = { then: (_done: unknown, failed: (error: Error) => void) => failed(new Error('no connection')) }
  const store = refusing({ list: () => query as unknown as Promise<string[]> })
  await t.rejects(store.list(), { code: 'SG_ERR_STORE_UNAVAILABLE', cause: { message: 'no connection' } })
})

t.test('what is only read says nothing of whether a write would be taken', async (t) => {
  const memory = createMemoryStorage()
  const full = () => Promise.reject(new Error('disk full'))
  const journal: GatewayStorage['journal'] = Object.create(memory.journal, { write: { value: full } })
  const queue = Object.assign(Object.create(memory.queue), { unreadable: async () => [] }) as GatewayStorage['queue']
  const watch = watched({ ...memory, journal, queue })
  await t.rejects(watch.storage.journal.write({ id: 'one' }))
  await watch.storage.queue.unreadable!()
  t.equal(watch.available, false)
})

t.test('what a gateway could not write before it was closed is not written into what the next one has', async (t) => {
  const storage = testStorage()
  const { journal } = storage
  const first = await buildGateway(t, { storage })
  const { clock } = first
  const { id } = await first.registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => first.engine.last.sent.length === 1, 'its turn')
  await first.registry.durable(id)
  journal.broken = true
  first.engine.last.say('of the first')
  await until(() => !first.registry.isWritable, 'a write that fails')
  await first.gateway.close()
  journal.broken = false
  const second = await buildGateway(t, { storage, clock })
  await second.registry.rename(id, 'of the second', UNLIMITED)
  const written = journal.writes.length
  await clock.advance(60_000)
  t.same(journal.writes.slice(written), [])
  t.match(await journal.get(id), { state: { info: { title: 'of the second' } } })
})

t.test('a start that cannot read what is kept says why, in the words of the storage', async (t) => {
  const message = 'the table is gone'
  const broken = async () => {
    throw new Error(message)
  }
  const withQueue = createMemoryStorage()
  withQueue.queue.list = broken
  await t.rejects(buildGateway(t, { storage: withQueue, queue: {} }), { message })
  const withChannels = createMemoryStorage()
  withChannels.channels!.key = broken
  const channels = [{ name: 'browsers', format: 'web_push' as const, subject: 'https://example.com' }]
  await t.rejects(buildGateway(t, { storage: withChannels, notifications: { channels } }), { message })
})
