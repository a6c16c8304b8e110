import { Kind, type TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { NO_NUL } from '../../schemas/config-parts.js'
import { unknownName } from '../lib/unknown-name.js'
import { type ConfigProblem, memberPath } from './config-problem.js'
import { isSecret, namingMember, variantFor } from './config-schema.js'

/** Everything in which `value` differs from `schema`, one problem per place, unknown keys by their path. No value is ever quoted. */
export function schemaProblems(schema: TSchema, value: unknown, base = ''): ConfigProblem[] {
  const problems = new Map<string, ConfigProblem>()
  for (const error of Value.Errors(schema, value))
    for (const problem of describe(error, value, base))
      if (!problems.has(problem.path)) problems.set(problem.path, problem)
  return [...problems.values()]
}

function describe(error: ValueError, root: unknown, base: string): ConfigProblem[] {
  const path = configPath(error.path, root, base)
  const { schema } = error
  if (error.type === ValueErrorType.Union) {
    const unnamed = unnamedVariant(schema, error.value, path)
    if (unnamed) return [unnamed]
    // A union says only that nothing matched; what the caller meant says what is wrong inside it.
    const meant = variantFor(schema, error.value)
    const isMeant =
      ['Object', 'Array'].includes(meant[Kind]!) || (meant[Kind] === 'String' && typeof error.value === 'string')
    const inside = isMeant ? schemaProblems(meant, error.value, path) : []
    if (inside.length === 0) return [{ path, message: `expected ${expectation(schema)}` }]
    const others = ofOtherVariants(schema, meant, error.value, path)
    return inside.map((problem) => others.get(problem.path) ?? problem)
  }
  return [{ path, message: message(error) }]
}

/** Members by which another variant is told, beside those of the one that is meant: they are known, and too many. By their paths. */
function ofOtherVariants(schema: TSchema, meant: TSchema, value: unknown, path: string): Map<string, ConfigProblem> {
  const variants = (schema.anyOf as TSchema[]).filter((variant) => variant[Kind] === 'Object')
  const problems = new Map<string, ConfigProblem>()
  if (meant[Kind] !== 'Object' || namingMember(variants) !== undefined) return problems
  const own = Object.keys(value as object).filter((key) => Object.hasOwn(meant.properties, key))
  for (const key of Object.keys(value as object)) {
    if (own.includes(key) || !variants.some(({ properties }) => Object.hasOwn(properties, key))) continue
    const message = `not together with ${own.join(', ')}; leave out one of them`
    problems.set(memberPath(path, key), { path: memberPath(path, key), message })
  }
  return problems
}

/** What is wrong with the member that says which variant is meant, when it says none of them. */
function unnamedVariant(schema: TSchema, value: unknown, path: string): ConfigProblem | undefined {
  const variants = (schema.anyOf as TSchema[]).filter((variant) => variant[Kind] === 'Object')
  const name = namingMember(variants)
  if (name === undefined || jsonType(value) !== 'an object') return undefined
  const given = (value as Record<string, unknown>)[name]
  const known = variants.map(({ properties }) => properties[name].const)
  if (known.includes(given)) return undefined
  const missing = given === undefined ? 'missing; ' : ''
  return {
    path: memberPath(path, name),
    message: `${missing}expected ${listed(known.map((one) => JSON.stringify(one)))}`,
  }
}

function message({ type, schema, value, path }: ValueError): string {
  switch (type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return unknownName('key', path.slice(path.lastIndexOf('/') + 1), parentKeys(schema))
    case ValueErrorType.ObjectRequiredProperty:
      return `missing; expected ${expectation(schema)}`
    case ValueErrorType.StringPattern:
      if (schema.pattern === NO_NUL) return 'a path has no NUL character in it; write the path without \\u0000'
      return `does not match ${schema.pattern}${schema.description ? ` (${schema.description})` : ''}`
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1 ? 'must not be empty' : `must have at least ${schema.minLength} characters`
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema.maxLength} characters`
    case ValueErrorType.ArrayMinItems:
      return `expected at least ${schema.minItems} entry; leave the section out if there is none`
    case ValueErrorType.ArrayMaxItems:
      return `expected at most ${schema.maxItems} entries`
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
      return `must be at least ${schema.minimum}`
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return `must be at most ${schema.maximum}`
    default: {
      if (schema.type === 'integer' && typeof value === 'number') return 'expected an integer; write a whole number'
      const number = schema.type === 'integer' && typeof value === 'string'
      const hint = number ? '; write it without quotes (a flag such as --port takes a variable)' : ''
      return `expected ${expectation(schema)}, not ${jsonType(value)}${hint}`
    }
  }
}

const parentKeys = (schema: TSchema): string[] => Object.keys((schema.properties as object | undefined) ?? {})

function expectation(schema: TSchema): string {
  if (schema[Kind] === 'Literal') return JSON.stringify(schema.const)
  if (schema[Kind] === 'Union') return unionExpectation(schema.anyOf as TSchema[])
  if (isSecret(schema)) return 'a string or { "file": path }'
  if (schema[Kind] === 'Object') {
    const [key, ...more] = (schema.required as string[] | undefined) ?? []
    return key === undefined || more.length > 0 ? 'an object' : `{ "${key}": … }`
  }
  const type = String(schema.type ?? 'a value')
  return type === 'boolean' ? 'true or false' : `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`
}

/** Variants that one member tells apart are shown by that member, once. */
function unionExpectation(variants: TSchema[]): string {
  const name = namingMember(variants)
  return name === undefined ? listed(variants.map(expectation)) : `{ "${name}": … }`
}

const listed = (options: string[]): string =>
  options.length < 2 ? options.join('') : `${options.slice(0, -1).join(', ')} or ${options.at(-1)}`

const jsonType = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'an array'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`

/** TypeBox gives JSON pointers; only the value tells whether `0` is an index or a key. */
function configPath(pointer: string, root: unknown, base: string): string {
  let path = base
  let parent: unknown = root
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~')
    path = memberPath(path, Array.isArray(parent) ? Number(key) : key)
    parent = (parent as Record<string, unknown> | undefined)?.[key]
  }
  return path
}
