import t from 'tap'
import { labelled, stackedBars, ticksTo } from '../../console/src/model/plot.js'
import {
  averageWaitMs,
  daysBetween,
  filled,
  lastDays,
  tokensOf,
  totalOf,
  type UsageRow,
} from '../../console/src/model/usage.js'
import { MEASURES, SERIES, valueOfMeasure } from '../../console/src/model/usage-measures.js'
import { USAGE_NUMBERS } from '../../schemas/usage.js'

const row = (more: Partial<UsageRow>): UsageRow => ({
  ...(Object.fromEntries(USAGE_NUMBERS.map((name) => [name, 0])) as unknown as UsageRow),
  ...more,
})

t.test('ranges are days of UTC, both ends included', async (t) => {
  const now = Date.parse('2026-03-01T00:30:00Z')
  t.strictSame(lastDays(7, now), { from: '2026-02-23', to: '2026-03-01' })
  t.strictSame(daysBetween('2026-02-27', '2026-03-02'), ['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'])
  t.strictSame(daysBetween('2026-03-02', '2026-03-01'), [])
  t.strictSame(daysBetween('nonsense', '2026-03-01'), [])
  t.equal(daysBetween('0001-01-01', '9999-12-31').length, 401, 'bounded')
})

t.test('days without a row are nothing, and not left out', async (t) => {
  const rows = [row({ day: '2026-03-02', turns: 2 })]
  t.strictSame(
    filled(rows, '2026-03-01', '2026-03-03').map(({ day, turns }) => [day, turns]),
    [
      ['2026-03-01', 0],
      ['2026-03-02', 2],
      ['2026-03-03', 0],
    ],
  )
})

t.test('sums are of everything that is counted', async (t) => {
  const numbers = Object.fromEntries(USAGE_NUMBERS.map((name) => [name, 2]))
  const total = totalOf([row({ ...numbers, costUsd: 0.5 }), row({ ...numbers, approvalWaitMaxMs: 9 })])
  for (const name of USAGE_NUMBERS) t.equal(total[name], name === 'approvalWaitMaxMs' ? 9 : 4, name)
  t.equal(total.costUsd, 0.5)
  t.equal(totalOf([row({})]).costUsd, undefined, 'no turn told one')
  t.equal(tokensOf(total), 16)
  t.equal(averageWaitMs(row({ approvalWaits: 4, approvalWaitMs: 10 })), 2.5)
  t.equal(averageWaitMs(row({})), undefined)
  const some = row({
    turns: 3,
    turnsSucceeded: 1,
    turnsFailed: 1,
    turnsInterrupted: 1,
    approvalsAsked: 2,
    approvalsAnswered: 1,
  })
  for (const measure of MEASURES)
    t.equal(
      SERIES[measure].reduce((sum, { of }) => sum + of(some), 0),
      valueOfMeasure(measure, some),
      `the parts of ${measure} are the whole`,
    )
})

t.test('marks are round and reach over the highest bar', async (t) => {
  t.strictSame(ticksTo(7), [0, 2, 4, 6, 8])
  t.strictSame(ticksTo(100), [0, 50, 100])
  t.strictSame(ticksTo(0.3), [0, 0.1, 0.2, 0.3])
  t.strictSame(ticksTo(0), [0, 1])
  t.strictSame(ticksTo(Number.NaN), [0, 1])
  for (const max of [1, 3, 12, 999, 12_345_678, 0.00007]) {
    const ticks = ticksTo(max)
    t.ok(ticks.at(-1)! >= max && ticks.length <= 6, `${max}: ${ticks}`)
  }
})

t.test('bars stand on each other, in their places, as high as they are', async (t) => {
  const [first, second] = stackedBars(
    [
      [1, 3],
      [0, 0],
    ],
    4,
    100,
    200,
  )
  t.strictSame(first!.parts, [
    { series: 0, y: 150, height: 50 },
    { series: 1, y: 0, height: 150 },
  ])
  t.strictSame(second!.parts, [])
  t.ok(first!.x + first!.width <= 50 && second!.x >= 50, 'neither is in the place of the other')
  t.equal(stackedBars([[1e-9]], 1, 10, 100)[0]!.parts[0]!.height, 0.75, 'a little is seen')
  t.strictSame(labelled(30, 7), [4, 9, 14, 19, 24, 29])
  t.strictSame(labelled(3, 10), [0, 1, 2])
  t.strictSame(labelled(0, 5), [])
})
