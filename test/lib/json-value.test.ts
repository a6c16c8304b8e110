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

t.test('a list of a class that is made of something else than a length is copied as a list', async (t) => {
  class Tags extends Array<unknown> {
    constructor(tags: Iterable<unknown>) {
      super()
      for (const tag of tags) this.push(tag)
    }
  }
  const tags = new Tags(['a', { b: 1 }])
  const copy = copyOf({ tags })
  t.strictSame(copy, { tags: ['a', { b: 1 }] })
  t.not(copy.tags[1], tags[1])
})

t.test('a copy has an end where every object has a member', async (t) => {
  let reads = 0
  const get = () => {
    if (++reads > 100) throw new Error('There is no end to it.')
    return {}
  }
  const set = function (this: object, value: unknown) {
    Object.defineProperty(this, 'ofAll', { value, enumerable: true })
  }
  Object.defineProperty(Object.prototype, 'ofAll', { get, set, enumerable: true, configurable: true })
  try {
    t.strictSame(Object.keys(copyOf({ a: {} })), ['a'])
  } finally {
    Reflect.deleteProperty(Object.prototype, 'ofAll')
  }
})

t.test('nothing is too deep for a copy', async (t) => {
  let value: object = {}
  for (let depth = 0; depth < 20_000; depth++) value = depth % 2 ? [value] : { value }
  let copy: unknown = copyOf(value)
  let depth = 0
  for (; Object.values(copy as object).length > 0; depth++) [copy] = Object.values(copy as object)
  t.equal(depth, 20_000)
})
