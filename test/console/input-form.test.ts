import t from 'tap'
import { fieldsOf, inputFrom, type Schema, schemaOf, valuesOf } from '../../console/src/model/input-form.js'
import { parsedObject } from '../../console/src/model/json.js'

const schema: Schema = {
  type: 'object',
  required: ['path', 'mode'],
  properties: {
    path: { type: 'string', title: 'Path', description: 'Where', minLength: 2 },
    mode: { type: 'string', enum: ['read', 'write'] },
    depth: { type: 'integer', minimum: 1, maximum: 9 },
    force: { type: 'boolean' },
    tags: { type: 'array' },
  },
}

t.test('a form is made of a schema', async (t) => {
  const input = { path: 'a/b', mode: 'read', extra: { x: 1 } }
  const fields = fieldsOf(schema, input)!
  t.strictSame(
    fields.map(({ name, kind }) => `${name} ${kind}`),
    ['path text', 'mode choice', 'depth number', 'force boolean', 'tags json', 'extra json'],
  )
  t.match(fields[0], { label: 'Path', hint: 'Where', isRequired: true })
  const values = valuesOf(fields, input)
  t.strictSame(inputFrom(fields, values, input), { input }, 'what was left as it was changes nothing')
  t.strictSame(inputFrom(fields, { ...values, depth: '3', force: true, tags: '["t"]', mode: 'write' }, input), {
    input: { path: 'a/b', mode: 'write', extra: { x: 1 }, depth: 3, force: true, tags: ['t'] },
  })
})

t.test('what is wrong is said at its field, and nothing is made of it', async (t) => {
  const input = { path: 'a/b', mode: 'read' }
  const fields = fieldsOf(schema, input)!
  const problemsOf = (changes: Record<string, string>) => {
    const made = inputFrom(fields, { ...valuesOf(fields, input), ...changes }, input)
    return 'problems' in made ? Object.fromEntries(made.problems) : made
  }
  t.strictSame(problemsOf({ path: '', depth: 'x', tags: '[' }), { path: 'required', depth: 'number', tags: 'json' })
  t.strictSame(problemsOf({ depth: '1.5', mode: '' }), { depth: 'integer', mode: 'required' })
  t.strictSame(problemsOf({ depth: '0', path: 'a' }), { depth: { least: 1 }, path: { shortest: 2 } })
  t.strictSame(problemsOf({ depth: '10' }), { depth: { most: 9 } })
  t.strictSame(problemsOf({ tags: '1,"x":2' }), { tags: 'json' }, 'no second member by the back door')
})

t.test('without a schema the form is made of the input', async (t) => {
  const input = { command: 'ls', script: 'a\nb', count: 2, dry: false, nothing: null, list: [1] }
  const fields = fieldsOf(schemaOf(input), input)!
  t.strictSame(
    fields.map(({ kind }) => kind),
    ['text', 'long', 'number', 'boolean', 'json', 'json'],
  )
  t.strictSame(inputFrom(fields, { ...valuesOf(fields, input), command: 'ls -l' }, input), {
    input: { ...input, command: 'ls -l' },
  })
})

t.test('what is too much for a form has none, and hostile names are names', async (t) => {
  t.equal(fieldsOf({}, {}), undefined)
  t.equal(fieldsOf({}, Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, 1]))), undefined)
  const input = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, unknown>
  const fields = fieldsOf(schemaOf(input), input)!
  const made = inputFrom(fields, { ...valuesOf(fields, input), constructor: 'z' }, input)
  t.equal(JSON.stringify('input' in made && made.input), '{"__proto__":"x","constructor":"z"}')
  t.equal(({} as { x?: unknown }).x, undefined)
})

t.test('JSON that is typed is an object, or it is said where it stops to be', async (t) => {
  t.strictSame(parsedObject('{"a":1}'), { value: { a: 1 } })
  t.strictSame(parsedObject('[1]'), { problem: 'no-object' })
  t.strictSame(parsedObject('{\n"a": 1,\n"b" 2\n}'), { problem: 'syntax', line: 3 })
  t.strictSame(parsedObject('{\n"a": 1'), { problem: 'syntax', line: 2 })
})
