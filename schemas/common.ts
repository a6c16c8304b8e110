import { type TLiteral, type TSchema, type TUnion, Type } from '@sinclair/typebox'

type Literals<T extends readonly string[]> = { -readonly [K in keyof T]: TLiteral<T[K]> }

/** A string that is one of the given values; typed as their union. */
export const StringEnum = <const T extends readonly string[]>(...values: T): TUnion<Literals<T>> =>
  Type.Union(values.map((value) => Type.Literal(value))) as never

/** The schema with words for who reads the documents; a shape of its own name keeps that. */
export const described = <T extends TSchema>(schema: T, description: string): T => ({ ...schema, description })

/** Beside a pattern: what it stands for, in words; a refusal says these, and no document has them. */
export const SHAPE = Symbol('shape')

/** Values with commas between them. */
export const Several = (values: readonly string[], description: string) =>
  Type.String({
    pattern: `^(${values.join('|')})(,(${values.join('|')}))*$`,
    description,
    [SHAPE]: `one or several of ${values.join(', ')}, with commas and no spaces between them, as in ${values.slice(0, 2).join(',')}`,
  })

export const Text = (description: string) => Type.String({ description })
export const Flag = (description: string) => Type.Boolean({ description })
export const Count = (description: string) => Type.Number({ description })
/** A point in time. */
export const Moment = (description: string) => Type.Number({ description: `${description}, epoch milliseconds.` })
/** How long something took. */
export const Duration = (description: string) => Type.Number({ description: `${description}, milliseconds.` })

/** An object whose unknown members are refused; every request body is one. */
export const strict = { additionalProperties: false } as const

export const Origin = Type.String({
  pattern: '^https?://[a-z0-9.\\[\\]:-]+$',
  description:
    "As a browser sends it: scheme and host, in lower case, the port only when it is not the scheme's own, nothing behind.",
})

/** The largest number of milliseconds a caller may name: about 285 years, exact as an integer. */
export const MAX_MS = 9_007_199_254_740

export const Milliseconds = (minimum = 0, description?: string) =>
  Type.Integer({ minimum, maximum: MAX_MS, ...(description !== undefined && { description }) })

/** Any member name. The pattern of a plain `Type.String()` ends at a line break and leaves members with one unchecked. */
const AnyName = Type.String({ pattern: '^[\\s\\S]*$' })

/** An object whose member names are free and whose values all have one shape. */
export const Dictionary = <T extends TSchema>(value: T) => Type.Record(AnyName, value)

/** Free-form JSON object; its depth is bounded where it enters. */
export const JsonObject = Dictionary(Type.Unknown())
