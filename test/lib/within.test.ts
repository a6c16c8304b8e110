import t from 'tap'
import { delayAfter } from '../../src/lib/backoff.js'
import { within } from '../../src/lib/within.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const never = new Promise<never>(() => {})

t.test('work that ends in time is what comes, and leaves no timer', async (t) => {
  const clock = new VirtualClock()
  const onLate = () => t.fail('it is not late')
  t.equal(await within(10, Promise.resolve('done'), { clock, onLate }), 'done')
  await t.rejects(within(10, Promise.reject(new Error('broken')), { clock, onLate }), { message: 'broken' })
  t.equal(await within(10, 'at once', { clock, onLate }), 'at once')
  t.equal(clock.pendingTimers, 0)
})

t.test('work that does not end is waited for as long as was said, and no longer', async (t) => {
  const clock = new VirtualClock()
  let came: unknown = 'nothing yet'
  const waiting = within(10, never, { clock }).then((value) => {
    came = value
  })
  await clock.advance(9)
  t.equal(came, 'nothing yet')
  await clock.advance(1)
  await waiting
  t.equal(came, undefined)

  const refused = within(10, never, {
    clock,
    onLate: () => {
      throw new Error('too late')
    },
  })
  const instead = within(10, never, { clock, onLate: () => 'instead' })
  const told = t.rejects(refused, { message: 'too late' })
  await clock.advance(10)
  await told
  t.equal(await instead, 'instead')
})

t.test('work that fails after it was given up breaks nothing', async (t) => {
  const clock = new VirtualClock()
  let fail = (_: Error) => {}
  const work = new Promise<never>((_, reject) => {
    fail = reject
  })
  const waiting = within(10, work, { clock })
  await clock.advance(10)
  t.equal(await waiting, undefined)
  fail(new Error('too late to matter'))
  await new Promise(setImmediate)
})

t.test('delays double until the longest', async (t) => {
  const delays = (longestMs?: number) =>
    [1, 2, 3, 4].map((tries) => delayAfter(tries, { firstMs: 500, ...(longestMs && { longestMs }) }))
  t.same(delays(), [500, 1_000, 2_000, 4_000])
  t.same(delays(1_500), [500, 1_000, 1_500, 1_500])
  t.equal(delayAfter(2_000, { firstMs: 1, longestMs: 7 }), 7, 'however many tries there were')
})
