import t from 'tap'
import { copyOf } from '../../src/lib/json-value.js'

t.test('a copy has nothing in common with what it is of, all the way down', async (t) => {
  const made = new Date()
  const value = { a: [1, [{ b: null, made }]], ...JSON.parse('{"c":{"__proto__":{"d":true}}}') }
  const copy = copyOf(value)
  t.strictSame(copy, value)
  t.equal(JSON.stringify(copy), JSON.stringify(value), 'also of a member that is named __proto__')
  t.equal(copy.a[1][0].made, made, 'what is neither list nor plain object is itself')
  copy.a[1][0].b = 'written into'
  copy.c.more = true
  t.equal(value.a[1][0].b, null)
  t.equal(value.c.more, undefined)
})

t.test('what is no list and no object is its own copy', async (t) => {
  for (const value of ['text', 1, true, null, undefined]) t.equal(copyOf(value), value)
})

t.test('nothing is too deep for a copy', async (t) => {
  let value: object = {}
  for (let depth = 0; depth < 20_000; depth++) value = depth % 2 ? [value] : { value }
  let copy: unknown = copyOf(value)
  let depth = 0
  for (; Object.values(copy as object).length > 0; depth++) [copy] = Object.values(copy as object)
  t.equal(depth, 20_000)
})
