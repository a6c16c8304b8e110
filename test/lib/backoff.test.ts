import t from 'tap'
import { delayAfter } from '../../src/lib/backoff.js'

t.test('a pause is doubled after every try, and stays a number after thousands', async (t) => {
  t.same(
    [1, 2, 3, 9].map((tries) => delayAfter(tries, { firstMs: 500, longestMs: 30_000 })),
    [500, 1_000, 2_000, 30_000],
  )
  t.equal(delayAfter(5_000, { firstMs: 500, longestMs: 30_000 }), 30_000)
  t.equal(delayAfter(5_000, { firstMs: 0 }), 0)
})
