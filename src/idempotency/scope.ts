import { createHash } from 'node:crypto'
import { byText } from '../lib/sorted-list.js'
import { mayManage, type Principal, visibleProfiles } from '../principal.js'

const digest = (parts: unknown): string => createHash('sha256').update(JSON.stringify(parts)).digest('base64url')

/** A key as it is stored: keys of different callers and of different paths are different keys. */
export const scopedKey = (principal: Principal, method: string, path: string, key: string): string =>
  digest([identityOf(principal), method, path, key])

/** Tells one request's body from another's; the order of members says nothing. */
export const fingerprintOf = (body: unknown): string => digest(inOrder(body ?? null))

/** The fingerprint as it was while the order of members still counted, for keys that were kept then: each is remembered for a day. */
export const earlierFingerprintOf = (body: unknown): string => digest(body ?? null)

function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(inOrder)
  const members = Object.entries(value).map(([name, member]) => [name, inOrder(member)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => byText(a, b)))
}

/**
 * Who a caller is, as far as `authenticate` said: by `id`, `sub` or `name` of what it returned, else by all of it. What a caller may see
 * is part of it, so that nobody is shown an answer that was given when they were allowed more.
 */
function identityOf(principal: Principal): unknown[] {
  return [whoOf(principal.claims), visibleProfiles(principal)?.sort() ?? null, mayManage(principal)]
}

/** `id` or `sub` of what `authenticate` returned. */
export function idOf(claims: unknown): string | number | undefined {
  const { id, sub } = Object(claims) as Record<string, unknown>
  return [id, sub].map(asId).find(isId)
}

const isId = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number'

/** Databases number their rows by `bigint`, too, which JSON does not have. */
const inJson = (value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value)

/** Or by objects, as bytes are, that say in JSON which one they are. */
function asId(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return inJson(value)
  const { toJSON } = value as { toJSON?: unknown }
  const said = inJson(typeof toJSON === 'function' ? toJSON.call(value) : value)
  const text = isId(said) ? said : textOf(said ?? {})
  // of what is hidden inside it says nothing
  return text === '{}' ? undefined : text
}

/** @returns undefined for what is no JSON */
function textOf(value: object): string | undefined {
  try {
    return JSON.stringify(value, (_, part) => inJson(part))
  } catch {
    return undefined
  }
}

/** By `id`, `sub` or `name` of what `authenticate` returned, else by all of it. */
export function whoOf(claims: unknown): unknown {
  if (typeof claims !== 'object' || claims === null) return String(claims)
  const { name } = claims as Record<string, unknown>
  const named = [idOf(claims), name].find(isId)
  return named ?? textOf(claims) ?? 'unnamed'
}
