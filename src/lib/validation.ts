import { KindGuard, type Static, type TSchema } from '@sinclair/typebox'
import { TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler'
import { SHAPE } from '../../schemas/common.js'
import { type FieldError, GatewayError } from '../errors.js'
import { isRecord } from './json-value.js'
import { ended } from './sentence.js'

const MAX_ERRORS = 10
/** Of a path that is told back: member names are the caller's and may be as long as a body. */
const MAX_PATH_LENGTH = 200

/** A compiled schema that checks without coercing, filling in or removing anything. */
export interface Checker<T> {
  check(value: unknown): value is T
  /** What is wrong, by field, at most ten; empty when nothing is. Paths are dotted, `at` is put before them. */
  errors(value: unknown, at?: string): FieldError[]
  /** @throws SG_ERR_VALIDATION naming the fields */
  assert(value: unknown, at?: string): asserts value is T
}

export function compileSchema<T extends TSchema>(schema: T): Checker<Static<T>> {
  let compiled: ReturnType<typeof TypeCompiler.Compile<T>> | undefined
  const lazily = () => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled
  }
  // Checked first: the search for errors looks at own members only, and would miss the methods of a host's class.
  const errors = (value: unknown, at = '') => (lazily().Check(value) ? [] : fieldErrors(lazily().Errors(value), at))
  return {
    check: (value): value is Static<T> => lazily().Check(value),
    errors,
    assert(value, at) {
      if (!lazily().Check(value)) throw validationError(errors(value, at))
    },
  }
}

export function validationError(errors: FieldError[]): GatewayError {
  const [first] = errors
  return new GatewayError('SG_ERR_VALIDATION', {
    ...(first && { detail: first.path ? `${first.path}: ${first.message}` : first.message }),
    errors,
  })
}

/** Why a value is refused that did not pass its check. @param found what is wrong with it */
export const refusalOf = (found: Iterable<ValueError>): GatewayError => validationError(fieldErrors(found, ''))

function fieldErrors(found: Iterable<ValueError>, at: string): FieldError[] {
  const byPath = new Map<string, FieldError>()
  for (const error of found) {
    for (const leaf of leaves(error)) {
      const path = dotted(leaf.path, at)
      if (!byPath.has(path)) byPath.set(path, { path, message: leaf.message })
      if (byPath.size >= MAX_ERRORS) return [...byPath.values()]
    }
  }
  return [...byPath.values()]
}

/** What is wrong where; `path` is a JSON pointer. */
interface Leaf {
  path: string
  message: string
}

/**
 * A union that failed is told by the variant that was meant: one whose literals all matched, and of those the one whose own members
 * are wrong least often. Where none was, by the member that chooses between them.
 */
function leaves(error: ValueError): Leaf[] {
  if (error.type !== ValueErrorType.Union) return [{ path: error.path, message: sentence(error) }]
  const isChoice = (found: ValueError[]) =>
    found.some((leaf) => leaf.path === error.path || leaf.type === ValueErrorType.Literal)
  const ownMembers = (found: ValueError[]) =>
    found.filter((leaf) => leaf.path.lastIndexOf('/') === error.path.length).length
  const variants = error.errors.map((iterator) => firstOf(iterator))
  const meant = variants
    .filter((found) => !isChoice(found))
    .sort((a, b) => ownMembers(a) - ownMembers(b) || a.length - b.length)[0]
  return (meant ?? besidesNull(error, variants))?.flatMap(leaves) ?? [choice(error)]
}

/** What is wrong by the one variant that `null` is the alternative to. */
function besidesNull({ schema }: ValueError, variants: ValueError[][]): ValueError[] | undefined {
  const anyOf = schema.anyOf as TSchema[]
  const [only, second] = variants.filter((_, at) => !KindGuard.IsNull(anyOf[at]))
  return anyOf.length > 1 && !second ? only : undefined
}

/** The member whose value selects the variant of an object; what is no object is told so. */
function choice(error: ValueError): Leaf {
  const { path, schema, value } = error
  const variants = schema.anyOf as TSchema[]
  if (!variants.every((variant) => KindGuard.IsObject(variant))) return { path, message: sentence(error) }
  if (!isRecord(value)) return { path, message: 'Expected object.' }
  for (const name of Object.keys(variants[0]!.properties)) {
    const values = new Set(variants.map(({ properties }) => properties[name]?.const).filter((one) => one !== undefined))
    if (values.size === variants.length) return { path: `${path}/${name}`, message: oneOf([...values]) }
  }
  return { path, message: sentence(error) }
}

const oneOf = (values: unknown[]): string => `Expected one of ${values.join(', ')}.`

/** As many errors as are told; a body can have a hundred thousand. */
function firstOf(found: Iterable<ValueError>): ValueError[] {
  const first: ValueError[] = []
  for (const error of found) if (first.push(error) === MAX_ERRORS) break
  return first
}

function sentence(error: ValueError): string {
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return 'Unknown property.'
    case ValueErrorType.ObjectRequiredProperty:
      return 'Required.'
    case ValueErrorType.Union: {
      const literals = (error.schema.anyOf as TSchema[])
        .map((variant) => variant.const)
        .filter((value) => value !== undefined)
      return literals.length > 0 ? oneOf(literals) : 'Matches none of the accepted shapes.'
    }
    case ValueErrorType.StringPattern: {
      const shape = (error.schema as { [SHAPE]?: string })[SHAPE]
      return shape === undefined ? ended(error.message) : `Expected ${shape}.`
    }
    default:
      return ended(error.message)
  }
}

function dotted(pointer: string, at: string): string {
  const segments = pointer.slice(0, MAX_PATH_LENGTH).split('/').slice(1)
  return [...(at ? [at] : []), ...segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))].join(
    '.',
  )
}
