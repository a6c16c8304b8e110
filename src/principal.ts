import type { AnswerChannel, AnsweredBy } from '../schemas/permissions.js'
import { GatewayError } from './errors.js'

/** What `authenticate` may return: any truthy value; these members of an object limit or extend it. */
export interface PrincipalClaims {
  /** Profiles the caller may see and use. Absent: all. `[]`: none. */
  allowedProfiles?: string[]
  /** Whether the caller may create, change and delete managed profiles. */
  canManageProfiles?: boolean
  /** What the caller is called: told with its answers to whoever sees the session, and in the log. */
  name?: string
}

/** An accepted caller: normalised once per request, or as a host says it, with an array. */
export interface Principal {
  /** Absent: no limit. */
  readonly allowedProfiles?: ReadonlySet<string> | readonly string[] | undefined
  readonly canManageProfiles?: boolean
  /** What `authenticate` returned. */
  readonly claims?: unknown
}

/** Who a name stands for by now: undefined when nobody is let in under it any more. */
export type CallerNamed = (name: string | undefined) => Principal | undefined

/** Nobody in particular and no limit: the host itself, and every caller of an unauthenticated gateway. */
export const UNLIMITED: Principal = { allowedProfiles: undefined, canManageProfiles: false }

/** Who was not asked for credentials: sees and may do nothing that is somebody's. */
export const NOBODY: Principal = { allowedProfiles: new Set(), canManageProfiles: false }

/**
 * Makes a Principal of what `authenticate` returned; `undefined` means refused.
 * @throws SG_ERR_AUTHENTICATE_FAILED when `allowedProfiles` is present but no array of strings: a limit that cannot be read must not
 * be read as none
 */
export function normalizePrincipal(claims: unknown): Principal | undefined {
  if (!claims) return undefined
  if (typeof claims !== 'object' && typeof claims !== 'function') return { ...UNLIMITED, claims }
  const { allowedProfiles, canManageProfiles } = claims as { allowedProfiles?: unknown; canManageProfiles?: unknown }
  if (allowedProfiles !== undefined && !isStringArray(allowedProfiles))
    throw new GatewayError('SG_ERR_AUTHENTICATE_FAILED', {
      detail: 'authenticate returned allowedProfiles that is no array of strings, so nobody was let in.',
    })
  return {
    allowedProfiles: allowedProfiles && new Set(allowedProfiles),
    canManageProfiles: canManageProfiles === true,
    claims,
  }
}

/** Longer names are cut: they stand in every event of an answer. */
export const MAX_NAME = 200
export const shownName = (name: string): string => name.slice(0, MAX_NAME)

/** What the caller is called in events and in the log, when `authenticate` gave it a `name`. */
export function nameOf(principal: Principal | undefined): string | undefined {
  const name = (principal?.claims as { name?: unknown } | null | undefined)?.name
  return typeof name === 'string' && name !== '' ? shownName(name) : undefined
}

/** Who answers, by a way that callers have. */
export function answeredBy(principal: Principal | undefined, channel: AnswerChannel): AnsweredBy {
  const name = nameOf(principal)
  return { ...(name !== undefined && { principal: name }), channel }
}

const isStringArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

/** A host may hand on what its `authenticate` refused with, or a promise that it did not await: neither says that there is no limit. */
const limitOf = (principal: Principal): Principal['allowedProfiles'] =>
  !principal || typeof (principal as { then?: unknown }).then === 'function'
    ? NOBODY.allowedProfiles
    : principal.allowedProfiles

/** The one visibility rule: every route, socket, stream and count asks here. A limit that cannot be read allows nothing. */
export function visible(principal: Principal, profile: string): boolean {
  const allowedProfiles = limitOf(principal)
  if (allowedProfiles === undefined) return true
  if (allowedProfiles instanceof Set) return allowedProfiles.has(profile)
  return Array.isArray(allowedProfiles) && allowedProfiles.includes(profile)
}

/** The profiles that a caller may see; undefined: all. */
export function visibleProfiles(principal: Principal): string[] | undefined {
  const allowedProfiles = limitOf(principal)
  if (allowedProfiles === undefined) return undefined
  return allowedProfiles instanceof Set || Array.isArray(allowedProfiles) ? [...allowedProfiles] : []
}

/** Those of them that a list is asked for; undefined: all. @param profile the only one, if it is asked for alone */
export function profilesAsked(principal: Principal, profile: string | undefined): string[] | undefined {
  if (profile === undefined) return visibleProfiles(principal)
  return visible(principal, profile) ? [profile] : []
}

/** Whether a caller may create, change and delete managed profiles. */
export const mayManage = (principal: Principal): boolean => principal?.canManageProfiles === true

/** Whether two callers, or one of then and of now, see the same. */
export function seeTheSame(one: Principal, other: Principal): boolean {
  const [these, those] = [visibleProfiles(one), visibleProfiles(other)]
  if (!these || !those) return these === those
  return these.every((profile) => visible(other, profile)) && those.every((profile) => visible(one, profile))
}
