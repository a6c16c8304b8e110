import { type FieldError, invalidField } from '../errors.js'

/** It is in every list, for everybody who looks at one. */
const MAX_META_BYTES = 16 * 1024

/**
 * A copy of lists and plain objects, all the way down and however deep, for code of a host that may write into what it is given, or has
 * given. Nothing may hold itself; what is neither stays what it is.
 */
export function copyOf<T>(value: T): T {
  const whole = shellOf(value)
  const open: [from: object, to: Record<string, unknown>][] = []
  const fill = (from: unknown, to: unknown) => {
    if (to !== from) open.push([from as object, to as Record<string, unknown>])
  }
  fill(value, whole)
  for (let next = open.pop(); next; next = open.pop()) {
    const [from, to] = next
    for (const [name, member] of Object.entries(from)) {
      const own = shellOf(member)
      // assigned, it would be what the copy inherits from
      if (name === '__proto__') Object.defineProperty(to, name, { ...MEMBER, value: own })
      else to[name] = own
      fill(member, own)
    }
  }
  return whole as T
}

const MEMBER = { enumerable: true, configurable: true, writable: true }

/** An empty one for a list or a plain object; anything else itself. */
function shellOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return []
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null ? {} : value
}

/**
 * What is kept and answered as JSON has to be some, and not too much: a host can hand in a BigInt, or an object that holds itself.
 * @returns what is wrong with it, if anything
 */
export function metaProblem(value: unknown, path: string): FieldError | undefined {
  if (value === undefined) return undefined
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    return { path, message: 'must be JSON: no BigInt, and nothing that holds itself.' }
  }
  if (json === undefined || Buffer.byteLength(json) <= MAX_META_BYTES) return undefined
  return { path, message: 'is at most 16 KiB of JSON. Keep what is larger yourself, under an id that you put here.' }
}

/** @throws SG_ERR_VALIDATION naming the field */
export function assertMeta(value: unknown, path: string): void {
  const problem = metaProblem(value, path)
  if (problem) throw invalidField(path, problem.message)
}
