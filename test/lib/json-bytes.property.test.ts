import fc from 'fast-check'
import t from 'tap'
import { jsonBytesAtMost } from '../../src/lib/json-bytes.js'

t.test('no value takes more bytes as JSON than it is said to take at most', async (t) => {
  const value = fc.anything({ withNullPrototype: true })
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(fc.oneof(value, fc.jsonValue(), text, fc.array(text)), (value) => {
      const json = JSON.stringify(value)
      return json === undefined || Buffer.byteLength(json) <= jsonBytesAtMost(value)
    }),
    { examples: [['\u001f'.repeat(9)], ['\ud800'], [-1.7976931348623157e308], [{ '\u0000': null }], [[]], [{}]] },
  )
  t.ok(jsonBytesAtMost({ id: 'x'.repeat(36), count: 7 }) < 6 * 60, 'and not much more')
})
