import t from 'tap'
import { Sweeper } from '../../src/storage/postgres/sweeper.js'
import type { CallDatabase } from '../../src/storage/sql/operations.js'
import { until } from '../fixtures/build.js'

t.test('what is removed while the database is away for a moment is taken away once it is back', async (t) => {
  const answers = [() => Promise.reject(new Error('connection lost')), async () => true, async () => false]
  const call = () => answers.shift()!()
  const sweeper = new Sweeper(call as CallDatabase)
  t.teardown(() => sweeper.stop())
  sweeper.start()
  // its timer keeps no process alive
  const alive = setInterval(() => {}, 1_000)
  await until(() => answers.length === 0, 'all of it').finally(() => clearInterval(alive))
})

t.test('a removal that is answered as the database is closed has nothing asked of it any more', async (t) => {
  const sweeper = new Sweeper((() => Promise.reject(new Error('not open'))) as CallDatabase)
  const timers = t.capture(globalThis, 'setTimeout')
  sweeper.stop()
  sweeper.start()
  t.same(timers(), [])
})
