import { Kind, type TSchema } from '@sinclair/typebox'
import { GatewayConfig, PATH_MARK, SECRET_MARK } from '../../schemas/config.js'

type JsonSchema = Record<string, unknown>

const ENV_REFERENCE = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}' }
const FILE_REFERENCE = {
  type: 'object',
  properties: { file: { type: 'string', minLength: 1, description: 'Path of a file that holds the secret.' } },
  required: ['file'],
  additionalProperties: false,
}

export const isSecret = (schema: TSchema): boolean => schema[SECRET_MARK] !== undefined
export const isSecretUrl = (schema: TSchema): boolean => schema[SECRET_MARK] === 'url'
/** Given as secrets are, and no secret. */
export const isPublic = (schema: TSchema): boolean => schema[SECRET_MARK] === 'public'
export const isPath = (schema: TSchema): boolean => schema[PATH_MARK] !== undefined
export const isCommand = (schema: TSchema): boolean => schema[PATH_MARK] === 'command'

/** The schema of the member `key`, or of every item or value of a list or record. */
export function memberSchema(schema: TSchema, key?: string): TSchema | undefined {
  if (schema[Kind] === 'Array') return schema.items as TSchema
  if (schema[Kind] === 'Record') return Object.values(schema.patternProperties as Record<string, TSchema>)[0]
  if (schema[Kind] !== 'Object' || key === undefined) return undefined
  const properties = schema.properties as Record<string, TSchema>
  return Object.hasOwn(properties, key) ? properties[key] : undefined
}

/** Of a union, the variant that `value` is meant to be, judged by its JSON type and by what names the variant; otherwise the schema itself. */
export function variantFor(schema: TSchema, value: unknown): TSchema {
  if (schema[Kind] !== 'Union') return schema
  // null is of no variant, though its typeof is that of objects
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  const fitting = (schema.anyOf as TSchema[]).filter(
    (variant) => variant.type === type || (type === 'object' && isSecret(variant)),
  )
  const name = namingMember(fitting)
  const named = name && fitting.find(({ properties }) => properties[name].const === (value as JsonSchema)[name])
  return named || (fitting.find((variant) => sharesMember(variant, value)) ?? fitting[0] ?? schema)
}

/** Whether a value has a member of an object's, by which it is told apart from others where no member names the variant. */
const sharesMember = ({ properties }: TSchema, value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).some((key) => Object.hasOwn(properties ?? {}, key))

/** The member by whose value variants are told apart, as `format` tells channels; undefined when there is none. */
export function namingMember(variants: readonly TSchema[]): string | undefined {
  const [first, ...others] = variants
  if (others.length === 0 || !variants.every((variant) => variant[Kind] === 'Object')) return undefined
  return Object.keys(first!.properties).find((key) =>
    variants.every(({ properties }) => properties[key]?.[Kind] === 'Literal'),
  )
}

/**
 * JSON Schema (draft-07 vocabulary) of `gateway.json` as an editor sees it: wherever the configuration has a string the file may refer to
 * the environment, and wherever it has a secret the file may point at another file.
 */
export const publishedConfigSchema = (): JsonSchema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...publish(GatewayConfig),
})

function publish(schema: TSchema): JsonSchema {
  const { [SECRET_MARK]: secret, [PATH_MARK]: _path, ...rest } = JSON.parse(JSON.stringify(schema)) as JsonSchema
  const kind = schema[Kind]
  if (kind === 'Object') {
    const members = Object.entries(schema.properties as Record<string, TSchema>)
    return { ...rest, properties: Object.fromEntries(members.map(([key, member]) => [key, publish(member)])) }
  }
  if (kind === 'Array') return { ...rest, items: publish(schema.items as TSchema) }
  if (kind === 'Record') {
    const patterns = Object.entries(schema.patternProperties as Record<string, TSchema>)
    return { ...rest, patternProperties: Object.fromEntries(patterns.map(([key, value]) => [key, publish(value)])) }
  }
  if (kind === 'Union') return publishUnion(schema, rest)
  if (kind !== 'String') return rest
  return allowing(rest, [
    ...(rest.pattern === undefined ? [] : [ENV_REFERENCE]),
    ...(secret === undefined ? [] : [FILE_REFERENCE]),
  ])
}

function publishUnion(schema: TSchema, rest: JsonSchema): JsonSchema {
  const variants = schema.anyOf as TSchema[]
  const { anyOf: _anyOf, ...annotations } = rest
  if (!variants.every((variant) => variant[Kind] === 'Literal'))
    return { ...annotations, anyOf: variants.flatMap((variant) => publish(variant)) }
  // One enum instead of a list of constants: editors complete it, and show one message when it is wrong.
  return allowing({ ...annotations, enum: variants.map((variant) => variant.const) }, [ENV_REFERENCE])
}

/** The schema, or one of the alternatives; what describes it stays on the outside, where editors look. */
function allowing(schema: JsonSchema, alternatives: JsonSchema[]): JsonSchema {
  if (alternatives.length === 0) return schema
  const { description, default: fallback, ...rest } = schema
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [rest, ...alternatives],
  }
}
