import t from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { StorageWatch } from '../../src/storage/availability.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

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
