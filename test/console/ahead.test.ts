import t from 'tap'
import { aheadBy } from '../../console/src/model/ahead.js'

const AT = Date.parse('2026-03-01T12:00:00Z')
const HOUR = 3_600_000
/** An answer that was dated `dated` ms after noon, asked for at noon as it is here, and taken `taken` ms. */
const answer = (dated: number | undefined, taken: number, age?: string) => ({
  headers: new Headers({
    ...(dated !== undefined && { date: new Date(AT + dated).toUTCString() }),
    ...(age !== undefined && { age }),
  }),
  askedAt: AT,
  arrivedAt: AT + taken,
})

t.test('how much later it is at the gateway', async (t) => {
  t.equal(aheadBy(0, answer(2 * HOUR, 100)), 2 * HOUR - 100)
  t.equal(aheadBy(0, answer(-2 * HOUR, 0)), -2 * HOUR)
  t.equal(aheadBy(0, answer(4_000, 100)), 0, 'nearly the same')
  t.equal(aheadBy(2 * HOUR, answer(2 * HOUR - 1_000, 300)), 2 * HOUR, 'as it was so far')
  t.equal(aheadBy(2 * HOUR, answer(0, 300)), 0, 'the clock here was set right')
})

t.test('an answer that took its time was dated at any of it', async (t) => {
  t.equal(aheadBy(0, answer(0, 8_000)), 0)
  t.equal(aheadBy(0, answer(8_000, 8_000)), 0)
  t.equal(aheadBy(2 * HOUR, answer(2 * HOUR, 8_000)), 2 * HOUR)
})

t.test('an answer that says nothing of now is left', async (t) => {
  for (const known of [0, HOUR]) {
    t.equal(aheadBy(known, answer(undefined, 10)), known, 'without a date, as of another origin')
    t.equal(aheadBy(known, answer(-8 * HOUR, 8 * HOUR)), known, 'the machine has slept')
    t.equal(aheadBy(known, answer(5_000, -HOUR)), known, 'the clock was set back meanwhile')
  }
})

t.test('an answer that was kept on the way is as old as is said', async (t) => {
  t.equal(aheadBy(0, answer(-HOUR, 10, '3600')), 0)
  t.equal(aheadBy(0, answer(HOUR, 0, '3600')), 2 * HOUR)
  t.equal(aheadBy(0, answer(0, 10, 'long')), 0)
})
