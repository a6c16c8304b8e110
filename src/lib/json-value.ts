import { type FieldError, invalidField } from '../errors.js'

/** It is in every list, for everybody who looks at one. */
const MAX_META_BYTES = 16 * 1024

/**
 * A copy of lists and plain objects, all the way down, for code of a host that may write into what it is given, or has given. Nothing may
 * hold itself; what is neither stays what it is.
 */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T
  if (typeof value !== 'object' || value === null) return value
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyOf(member)])) as T
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
