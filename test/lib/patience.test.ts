import t from 'tap'
import { PATIENCE_MS, Patience } from '../../src/lib/patience.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR_MS = 3_600_000

for (const [set, byMs] of [
  ['forward', HOUR_MS],
  ['back', -HOUR_MS],
] as const)
  t.test(`patience is the same when the clock is set ${set} meanwhile`, async (t) => {
    const clock = new VirtualClock()
    const patience = new Patience(clock)
    await clock.advance(1_000)
    clock.set(byMs)
    t.equal(patience.leftMs, PATIENCE_MS - 1_000)
    await clock.advance(1_000)
    t.equal(patience.leftMs, PATIENCE_MS - 2_000, 'and goes on')
  })

t.test('what waits for something else takes nothing of it, and no more than it took', async (t) => {
  const clock = new VirtualClock()
  const patience = new Patience(clock)
  let built = () => {}
  const apart = patience.apart(new Promise<void>((resolve) => (built = resolve)))
  await clock.advance(5_000)
  clock.set(HOUR_MS)
  built()
  await apart
  t.equal(patience.leftMs, PATIENCE_MS)
  await clock.advance(PATIENCE_MS)
  t.equal(patience.leftMs, 0)
})
