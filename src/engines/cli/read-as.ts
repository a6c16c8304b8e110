import { KindGuard, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { isRecord } from '../../lib/json-value.js'

/**
 * What an agent said, as far as it can be read: a member that it can do without is left out where that is of another type.
 * @returns undefined for what is of another type, or lacks what it cannot do without
 */
export function readAs(schema: TSchema, said: unknown): unknown {
  if (Value.Check(schema, said)) return said
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
