import { KindGuard, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { isRecord } from '../../lib/json-value.js'

/**
 * What an agent said, as far as it can be read: a member that it can do without is left out where that is of another type, and so is an entry
 * of a list or of a dictionary.
 * @returns undefined for what is of another type, or lacks what it cannot do without, and for a list or dictionary of which nothing can be read
 */
export function readAs(schema: TSchema, said: unknown): unknown {
  if (Value.Check(schema, said)) return said
  if (KindGuard.IsUnion(schema)) {
    for (const shape of schema.anyOf) {
      const read = readAs(shape, said)
      if (read !== undefined) return read
    }
    return undefined
  }
  if (KindGuard.IsArray(schema) && Array.isArray(said)) {
    const { items } = schema
    const entries = (said as unknown[]).map((entry) => readAs(items, entry)).filter((entry) => entry !== undefined)
    return entries.length > 0 ? entries : undefined
  }
  if (KindGuard.IsRecord(schema) && isRecord(said)) {
    const [shape] = Object.values(schema.patternProperties)
    const entries = Object.entries(said).map(([name, entry]) => [name, readAs(shape!, entry)] as const)
    const readable = entries.filter(([, entry]) => entry !== undefined)
    return readable.length > 0 ? Object.fromEntries(readable) : undefined
  }
  if (!KindGuard.IsObject(schema) || !isRecord(said)) return undefined
  const read: Record<string, unknown> = { ...(said as object) }
  for (const [name, shape] of Object.entries(schema.properties)) {
    const member = readAs(shape, read[name] === undefined ? shape.default : read[name])
    if (member !== undefined) read[name] = member
    else if (KindGuard.IsOptional(shape)) delete read[name]
    else return undefined
  }
  return read
}
