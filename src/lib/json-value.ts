import { type FieldError, invalidField } from '../errors.js'

/** Neither null nor a list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a value has at a path as `a.b`; undefined: nothing. */
export const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown> | null | undefined)?.[name], value)

/** Of a `meta`, which is in every list, for everybody who looks at one. */
const MAX_META_BYTES = 16 * 1024

/**
 * A copy of lists and plain objects, all the way down and however deep, for code of a host that may write into what it is given, or has
 * given. Nothing may hold itself; what is neither stays what it is.
 */
export function copyOf<T>(value: T): T {
  const whole = shallowCopy(value)
  const open = whole === value ? [] : [whole as Record<string, unknown>]
  for (let own = open.pop(); own; own = open.pop())
    for (const name in own) {
      const member = own[name]
      const copy = shallowCopy(member)
      // what somebody gave all objects has no end
      if (copy === member || !Object.hasOwn(own, name)) continue
      own[name] = copy
      open.push(copy as Record<string, unknown>)
    }
  return whole as T
}

/** Of a list or a plain object; anything else itself. */
function shallowCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  // a list of a host's own class is made by nobody but that
  if (Array.isArray(value)) return [...value]
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null ? { ...value } : value
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
