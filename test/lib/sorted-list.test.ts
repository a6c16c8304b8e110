import fc from 'fast-check'
import t from 'tap'
import { SortedList } from '../../src/lib/sorted-list.js'

const ascending = (a: number, b: number) => a - b

t.test('holds what a sorted set would, whatever is added and deleted', async () => {
  const operation = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 3_000 }))
  fc.assert(
    fc.property(
      fc.array(operation, { maxLength: 4_000, size: 'max' }),
      fc.integer({ min: 0, max: 3_000 }),
      (operations, place) => {
        const list = new SortedList<number>(ascending)
        const model = new Set<number>()
        for (const [adds, item] of operations) {
          if (!adds) {
            if (list.delete(item) !== model.delete(item)) return false
          } else if (!model.has(item)) {
            list.add(item)
            model.add(item)
          }
        }
        const sorted = [...model].sort(ascending)
        const below = sorted.filter((item) => item < place)
        return (
          list.length === sorted.length &&
          list.first === sorted[0] &&
          same([...list.descending()], sorted.reverse()) &&
          same([...list.descending((item) => item < place)], below.reverse())
        )
      },
    ),
    { numRuns: 60 },
  )
})

t.test('chunks of every size stay in order', async (t) => {
  const list = new SortedList<number>(ascending)
  for (let index = 0; index < 10_000; index++) list.add((index * 7919) % 10_007)
  const all = [...list.descending()]
  t.equal(all.length, 10_000)
  t.ok(all.every((item, index) => index === 0 || item < all[index - 1]!))
  t.ok(all.every((item) => list.delete(item)))
  t.equal(list.length, 0)
  t.equal(list.first, undefined)
  t.same([...list.descending()], [])
})

function same(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}
