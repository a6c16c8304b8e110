import t from 'tap'
import { settling } from '../../src/idempotency/making.js'
import { silentLogger } from '../../src/lib/logger.js'
import { idempotencyStore } from '../../src/storage/sql/idempotency-store.js'
import type { CallDatabase } from '../../src/storage/sql/operations.js'

/** A store of several processes, whose database does what it is asked in batches. */
function world() {
  const rows = new Set<string>()
  let batch: (() => void)[] = []
  /** Told of by the next batch, in place of what it would have done. */
  let isCut = false
  let again: (() => void) | undefined
  const call = ((name: string, key: string) =>
    new Promise((resolve, reject) =>
      batch.push(() => {
        if (isCut) return reject(new Error('cut'))
        if (name === 'idempotency.begin') rows.add(key)
        if (name === 'idempotency.release') rows.delete(key)
        resolve(undefined)
      }),
    )) as unknown as CallDatabase
  const retryAfter = (_ms: number, go: () => void) => {
    again = go
    return { cancel() {} }
  }
  const store = settling(
    idempotencyStore(call, () => 1),
    { logger: silentLogger, retryAfter: retryAfter as never },
  )
  return {
    rows,
    store,
    /** @returns how many calls it was */
    async run(cut = false): Promise<number> {
      await new Promise(setImmediate)
      const now = batch
      batch = []
      isCut = cut
      for (const one of now) one()
      await new Promise(setImmediate)
      return now.length
    },
    retry: () => again?.(),
  }
}

t.test('a key that is freed while another request asks for it is taken by nobody, or really', async (t) => {
  for (const cuts of [0, 1]) {
    const { store, rows, run, retry } = world()
    const first = store.begin('k', 'f')
    await run()
    t.same(await first, { state: 'new' })
    const second = store.begin('k', 'f')
    const released = store.release('k')
    await run()
    t.same(await second, { state: 'in_flight' }, 'the first one has it')
    for (let left = cuts; left > 0; left--) {
      await run(true)
      retry()
    }
    await run()
    await released
    t.notOk(rows.has('k'))
    const third = store.begin('k', 'f')
    await run()
    t.same(await third, { state: 'new' })
    t.equal(await run(), 0, 'nothing is left to be done with it')
    t.ok(rows.has('k'))
  }
})

t.test('a key is freed once, however many come for it meanwhile', async (t) => {
  const { store, rows, run, retry } = world()
  const first = store.begin('k', 'f')
  await run()
  await first
  const released = store.release('k')
  await run(true)
  await released
  retry()
  const [second, third] = [store.begin('k', 'f'), store.begin('k', 'f')]
  t.equal(await run(), 1, 'one is at it')
  t.notOk(rows.has('k'))
  await run()
  await run()
  t.same(await Promise.all([second, third]), [{ state: 'new' }, { state: 'in_flight' }])
  t.equal(await run(), 0)
  t.ok(rows.has('k'))
})
