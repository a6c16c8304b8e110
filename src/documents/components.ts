import { Kind, type TArray, type TObject, type TSchema } from '@sinclair/typebox'
import { described } from '../../schemas/common.js'
import { byText } from '../lib/sorted-list.js'
import { descriptionOf, nameOf, shapeOf, TAGGED, type TaggedUnion, variantName } from './names.js'

export type JsonSchema = Record<string, unknown>

const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/** In the order of their names, so that two documents can be compared. */
export const sorted = <T>(entries: Record<string, T>): Record<string, T> =>
  Object.fromEntries(Object.entries(entries).sort(([a], [b]) => byText(a, b)))

/**
 * The schemas of a document: JSON Schema 2020-12 out of TypeBox's, in which every public type stands once under its name and is referred to.
 * Only what was asked for is in `schemas`.
 */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {}
  readonly responses: Record<string, JsonSchema> = {}
  readonly #variants = new Map<string, string>()
  readonly #kind: 'openapi' | 'asyncapi'

  constructor(kind: 'openapi' | 'asyncapi') {
    this.#kind = kind
  }

  /** The schema, or the reference to it when it has a name, with what is said of it at this place. */
  publish(schema: TSchema): JsonSchema {
    const name = nameOf(schema) ?? this.#variants.get(shapeOf(schema))
    if (name === undefined) return this.#inline(schema)
    const { description } = schema
    const usual = descriptionOf(name) ?? description
    const reference = this.add(name, () => this.#named(name, usual === undefined ? schema : described(schema, usual)))
    return description === usual ? reference : { ...reference, description }
  }

  /** Puts a schema under a name, once, and refers to it. */
  add(name: string, make: () => JsonSchema): JsonSchema {
    if (!Object.hasOwn(this.schemas, name)) {
      // there already while it is made: it may refer to itself
      this.schemas[name] = {}
      this.schemas[name] = make()
    }
    return ref(name)
  }

  #named(name: string, schema: TSchema): JsonSchema {
    const union = TAGGED[name]
    return union ? { ...annotations(schema), ...this.#tagged(variantsOf(schema), union) } : this.#inline(schema)
  }

  #tagged(variants: TSchema[], { by, suffix }: TaggedUnion): JsonSchema {
    const mapping: Record<string, string> = {}
    const oneOf = variants.map((variant) => {
      const tag = tagOf(variant, by)
      const name = nameOf(variant) ?? variantName(tag, suffix)
      this.#variants.set(shapeOf(variant), name)
      const reference = this.publish(variant)
      mapping[tag] = String(reference.$ref)
      return reference
    })
    return { oneOf, discriminator: this.#kind === 'openapi' ? { propertyName: by, mapping } : by }
  }

  #inline(schema: TSchema): JsonSchema {
    const about = annotations(schema)
    switch (schema[Kind]) {
      case 'Literal':
        return { ...about, type: typeof schema.const, const: schema.const }
      case 'Union':
        return { ...about, ...this.#union(schema.anyOf as TSchema[]) }
      case 'Intersect':
        return { ...about, anyOf: variantsOf(schema).map((variant) => this.publish(variant)) }
      case 'Object':
        return { ...about, ...this.#object(schema as TObject) }
      case 'Record': {
        const [value] = Object.values(schema.patternProperties as Record<string, TSchema>)
        return { ...about, type: 'object', additionalProperties: this.publish(value!) }
      }
      case 'Array': {
        const { items, ...rest } = schema as TArray
        return { ...(JSON.parse(JSON.stringify(rest)) as JsonSchema), items: this.publish(items) }
      }
      default:
        return JSON.parse(JSON.stringify(schema)) as JsonSchema
    }
  }

  #union(variants: TSchema[]): JsonSchema {
    if (variants.every((variant) => variant[Kind] === 'Literal'))
      return { type: typeof variants[0]!.const, enum: variants.map((variant) => variant.const) }
    return { anyOf: variants.map((variant) => this.publish(variant)) }
  }

  #object({ properties, required, additionalProperties }: TObject): JsonSchema {
    const members = Object.entries(properties as Record<string, TSchema>)
    return {
      type: 'object',
      ...(members.length > 0 && {
        properties: Object.fromEntries(members.map(([name, member]) => [name, this.publish(member)])),
      }),
      ...(required && required.length > 0 && { required }),
      ...(additionalProperties !== undefined && { additionalProperties }),
    }
  }
}

function annotations({ description, default: fallback }: TSchema): JsonSchema {
  return { ...(description !== undefined && { description }), ...(fallback !== undefined && { default: fallback }) }
}

/** The variants of a union; of an intersection with one, each with the members that all of them have. */
function variantsOf(schema: TSchema): TSchema[] {
  if (schema[Kind] === 'Union') return schema.anyOf as TSchema[]
  const parts = schema.allOf as TSchema[]
  const common = parts.filter((part) => part[Kind] === 'Object') as TObject[]
  const union = parts.find((part) => part[Kind] === 'Union')
  return ((union?.anyOf ?? []) as TObject[]).map((variant) => {
    const objects = [variant, ...common]
    return {
      ...variant,
      required: objects.flatMap(({ required }) => required ?? []),
      properties: Object.assign({}, ...objects.map(({ properties }) => properties)),
    }
  })
}

/** The value that a variant has in the member that tells; that of its first variant when it is a union itself. */
function tagOf(variant: TSchema, by: string): string {
  const object = variant[Kind] === 'Union' ? (variant.anyOf as TSchema[])[0]! : variant
  return String((object.properties as Record<string, TSchema>)[by]?.const)
}
