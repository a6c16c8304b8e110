import fc from 'fast-check'
import t from 'tap'
import { JsonTextError, parseJsonText } from '../../src/daemon/json-text.js'

t.test('reads what JSON.parse reads', async (t) => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 2, '\t'), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), undefined, indent)
      t.strictSame(parseJsonText(text).value, JSON.parse(text))
    }),
  )
  t.strictSame(
    parseJsonText('\ufeff{"a": "\\u00e9\\n", "b": -1.5e3}').value,
    { a: 'é\n', b: -1500 },
    'with a byte order mark',
  )
})

t.test('knows where every member and item begins', async (t) => {
  const { positions } = parseJsonText('{\n  "listen": { "port": 1 },\n  "tokens": [\n    { "x-key": 1 }\n  ]\n}')
  t.strictSame(Object.fromEntries(positions), {
    listen: { line: 2, column: 3 },
    'listen.port': { line: 2, column: 15 },
    tokens: { line: 3, column: 3 },
    'tokens[0]': { line: 4, column: 5 },
    'tokens[0]["x-key"]': { line: 4, column: 7 },
  })
})

t.test('says what is wrong, and where', async (t) => {
  const refused: [text: string, message: string, line: number, column: number][] = [
    ['{\n  "a": 1,\n}', 'a comma before } is one too many', 3, 1],
    ['[1, ]', 'a comma before ] is one too many', 1, 5],
    ['{"a": 1', 'expected a comma or }, but the file ends here', 1, 8],
    ['{"a" 1}', 'expected a colon after the key', 1, 6],
    ['{a: 1}', 'expected a key in double quotes', 1, 2],
    ['{"a": \'x\'}', 'expected a value; JSON strings take double quotes', 1, 7],
    ['{"a": yes}', 'expected a value; "yes" needs double quotes', 1, 7],
    ['// hello', 'expected a value; JSON has no comments', 1, 1],
    ['{\n  // hello\n  "a": 1\n}', 'expected a key in double quotes; JSON has no comments', 2, 3],
    ['{"a": 1 /* hello */}', 'expected a comma or }; JSON has no comments', 1, 9],
    ['{"a": [1, # hello\n2]}', 'expected a value; JSON has no comments', 1, 11],
    ['{"a": /x/}', 'expected a value', 1, 7],
    ['{"a": 1,\n "a": 2}', 'the key "a" is there twice', 2, 2],
    ['{"a": "x\ny"}', 'this string does not end, or holds a character that needs escaping', 1, 7],
    ['{} x', 'expected the end of the file', 1, 4],
    ['01', 'expected the end of the file', 1, 2],
    ['', 'expected a value, but the file ends here', 1, 1],
  ]
  for (const [text, message, line, column] of refused)
    t.throws(() => parseJsonText(text), { name: 'JsonTextError', message, position: { line, column } }, text)
})

t.test('refuses what is nested beyond reason, without overflowing the stack', async (t) => {
  t.throws(() => parseJsonText('['.repeat(100_000)), JsonTextError)
  t.ok(parseJsonText('['.repeat(64) + ']'.repeat(64)))
})

t.test('an own __proto__ member stays one, for validation to refuse', async (t) => {
  t.ok(Object.hasOwn(parseJsonText('{"__proto__": 1}').value as object, '__proto__'))
})
