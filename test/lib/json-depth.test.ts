import fc from 'fast-check'
import t from 'tap'
import { exceedsJsonDepth, parseJson } from '../../src/lib/json-depth.js'

const nested = (levels: number, inner = '') => '['.repeat(levels) + inner + ']'.repeat(levels)

t.test('the limit', async (t) => {
  t.notOk(exceedsJsonDepth(nested(64)))
  t.ok(exceedsJsonDepth(nested(65)))
  t.ok(exceedsJsonDepth(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`))
  t.ok(exceedsJsonDepth(`{"meta":${nested(6000)}}`))
  t.ok(exceedsJsonDepth('['.repeat(65)), 'needs no end')
  t.notOk(exceedsJsonDepth(`[${'[],{},'.repeat(5000)}[]]`), 'many, side by side')
  t.notOk(exceedsJsonDepth('[]', 1))
  t.ok(exceedsJsonDepth('[[]]', 1))
  t.ok(exceedsJsonDepth('[]', 0))
  t.notOk(exceedsJsonDepth('1', 0))
  t.notOk(exceedsJsonDepth(''))
})

t.test('brackets in strings are text', async (t) => {
  const many = '[{'.repeat(100)
  const texts: [string, string, boolean][] = [
    ['a value', `{"a":"${many}"}`, false],
    ['a key', `{"${many}":1}`, false],
    ['behind an escaped quote', `["\\"${many}"]`, false],
    ['behind an escaped backslash the string is over', `["\\\\",${nested(64)}]`, true],
    ['behind two escaped backslashes', `["\\\\\\\\",${nested(64)}]`, true],
    ['behind an escaped backslash and an escaped quote', `["\\\\\\"${many}"]`, false],
    ['an escaped backslash before every quote', `["${'\\\\\\"['.repeat(100)}"]`, false],
    ['an escaped character', `["\\u005b${many}"]`, false],
    ['an empty string', `["",${nested(64)}]`, true],
    ['a string that is never closed', `["${many}`, false],
    ['a string that ends in a backslash', `["${many}\\`, false],
    ['characters of several bytes', `["\u015b\u017b\u5b5b\u{1f47b}\u0122",${nested(64)}]`, true],
  ]
  for (const [name, text, expected] of texts) {
    t.equal(exceedsJsonDepth(text), expected, name)
    t.equal(exceedsJsonDepth(Buffer.from(text)), expected, `${name}, as bytes`)
  }
})

t.test('a mebibyte', async (t) => {
  for (const text of [`["${'['.repeat(2 ** 20)}"]`, `["${'\\"'.repeat(2 ** 19)}"]`, `[${'[],'.repeat(2 ** 18)}[]]`]) {
    t.notOk(exceedsJsonDepth(text))
    t.notOk(exceedsJsonDepth(Buffer.from(text)))
  }
})

t.test('it counts what a recursive count of the parsed value counts', async () => {
  const count = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(count)) : 0
  const value = fc.jsonValue({ maxDepth: 8, depthSize: 'max', stringUnit: 'binary' })
  fc.assert(
    fc.property(value, fc.nat(9), fc.constantFrom(undefined, 2), (value, limit, indent) => {
      const text = JSON.stringify(value, null, indent)
      const expected = count(value) > limit
      return exceedsJsonDepth(text, limit) === expected && exceedsJsonDepth(Buffer.from(text), limit) === expected
    }),
    { numRuns: 500 },
  )
})

t.test('parseJson', async (t) => {
  t.test('parses texts and bytes', async (t) => {
    t.strictSame(parseJson('{"a":[1,"\u6f22",null]}'), { a: [1, '\u6f22', null] })
    t.strictSame(parseJson(Buffer.from('{"a":[1,"\u6f22",null]}')), { a: [1, '\u6f22', null] })
    t.equal(parseJson('null'), null)
    t.strictSame(parseJson('[[1]]', 2), [[1]])
    t.strictSame(parseJson('{"constructor":"me"}'), { constructor: 'me' }, 'a key that poisons nothing')
    t.strictSame(parseJson('{"a":"__proto__"}'), { a: '__proto__' })
  })

  t.test('refuses what is too deep before it is parsed', async (t) => {
    const tooDeep = { code: 'SG_ERR_TOO_DEEP', statusCode: 400, message: 'The JSON is nested deeper than 64 levels.' }
    t.throws(() => parseJson(nested(65)), tooDeep)
    t.throws(() => parseJson(nested(6000)), tooDeep)
    t.throws(() => parseJson('['.repeat(6000)), tooDeep)
    t.throws(() => parseJson('[[]]', 1), {
      code: 'SG_ERR_TOO_DEEP',
      message: 'The JSON is nested deeper than 1 levels.',
    })
  })

  t.test('refuses what is no JSON', async (t) => {
    for (const text of ['', ' ', '{', '{"a":1,}', "{'a':1}", 'undefined', 'NaN', '[1]]', '"\n"', '\0'])
      t.throws(() => parseJson(text), { code: 'SG_ERR_INVALID_JSON', statusCode: 400 }, JSON.stringify(text))
  })

  t.test('refuses a number that would be written down as null', async (t) => {
    const rows: [text: string, path: string][] = [
      ['1e400', ''],
      ['{"meta":{"a":[0,-1E+309]}}', 'meta.a.1'],
      [`{"n":${'9'.repeat(309)}}`, 'n'],
      [`{"n":1${'0'.repeat(300)}e9}`, 'n'],
    ]
    for (const [text, path] of rows)
      for (const json of [text, Buffer.from(text)])
        t.throws(() => parseJson(json), { code: 'SG_ERR_VALIDATION', statusCode: 400, errors: [{ path }] }, text)
    t.strictSame(parseJson('[1e308,1e-400,"1e400"]'), [1e308, 0, '1e400'])
  })

  t.test('refuses keys that would poison a prototype', async (t) => {
    for (const text of [
      '{"__proto__":{"a":1}}',
      '{"__proto__":null}',
      '{"a":[{"b":{"__proto__":{}}}]}',
      '{"\\u005f\\u005fproto\\u005f\\u005f":{}}',
      '{"__proto__" \n :{}}',
      '{"constructor":{"prototype":{"a":1}}}',
      '{"constructor":{"\\u0070rototype":{}}}',
    ])
      t.throws(() => parseJson(text), { code: 'SG_ERR_INVALID_JSON' }, text)
  })

  t.test('what was wrong is the cause, and no part of the sentence', async (t) => {
    try {
      parseJson('{"secret": oops}')
      t.fail('must throw')
    } catch (error) {
      t.notMatch((error as Error).message, /oops|secret/)
      t.match((error as Error).cause, SyntaxError)
    }
  })
})
