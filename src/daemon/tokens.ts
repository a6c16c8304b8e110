import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ConfigToken } from '../../schemas/config.js'
import { type Clock, systemClock } from '../lib/clock.js'
import { offeredToken } from '../lib/offered-token.js'
import {
  type CallerNamed,
  MAX_NAME,
  nameOf,
  normalizePrincipal,
  type PrincipalClaims,
  shownName,
} from '../principal.js'
import { type ConfigProblem, memberPath } from './config-problem.js'
import type { EffectiveConfig } from './load-config.js'

/** Prefix of generated tokens, by which secret scanners and the log's censor know one. */
const TOKEN_PREFIX = 'sgw_'

/** Who a bearer token stands for; what `authenticate` returns for it. */
export interface TokenPrincipal extends PrincipalClaims {
  name: string
}

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

/** A new token of 256 random bits, in characters that need no escaping anywhere. */
export const generateToken = (): string => TOKEN_PREFIX + randomBytes(32).toString('base64url')

/** When a token stops working, in epoch milliseconds; `NaN` when it cannot be read. */
const expiryOf = ({ expiresAt }: Pick<ConfigToken, 'expiresAt'>): number =>
  typeof expiresAt === 'string' ? Date.parse(expiresAt) : (expiresAt ?? Infinity)

/** What the schema cannot say about tokens: names and hashes are unique, dates are dates. */
export function tokenProblems(tokens: readonly ConfigToken[]): ConfigProblem[] {
  return tokens.flatMap((token, index) => {
    const path = memberPath('auth.tokens', index)
    const problems: ConfigProblem[] = []
    const earlier = tokens.slice(0, index)
    if (earlier.some(({ name }) => name === token.name))
      problems.push({ path: `${path}.name`, message: 'another token has this name already' })
    else if (earlier.some(({ name }) => shownName(name) === shownName(token.name)))
      problems.push({
        path: `${path}.name`,
        message: `another token's name has the same first ${MAX_NAME} characters, by which callers are told apart; give it another one`,
      })
    if (earlier.some(({ sha256 }) => sha256 === token.sha256))
      problems.push({ path: `${path}.sha256`, message: 'another entry has the same token already' })
    if (Number.isNaN(expiryOf(token)))
      problems.push({ path: `${path}.expiresAt`, message: 'expected an ISO 8601 date or epoch milliseconds' })
    return problems
  })
}

/** What of tokens can be served, and still lets in nobody, or into nothing. A profile may also be made later, where there is a `profileStore`. */
export function tokenWarnings(
  { auth, profiles, profileStore }: Pick<EffectiveConfig, 'auth' | 'profiles' | 'profileStore'>,
  clock: Clock = systemClock,
): ConfigProblem[] {
  const known = profiles && !profileStore ? profiles.map(({ name }) => name) : undefined
  return (auth?.tokens ?? []).flatMap((token, at) => {
    const path = memberPath('auth.tokens', at)
    const end = expiryOf(token)
    const warnings = (token.allowedProfiles ?? []).flatMap((name, index) => {
      if (!known || known.includes(name)) return []
      const message = `there is no profile ${JSON.stringify(name)}, which the token would be for; declared are ${known.join(', ') || 'none'}`
      return [{ path: memberPath(`${path}.allowedProfiles`, index), message }]
    })
    if (end <= clock.now())
      warnings.push({
        path: `${path}.expiresAt`,
        message: `the token lets nobody in: it ended at ${new Date(end).toJSON() ?? end}; give a later time, or take it out`,
      })
    return warnings
  })
}

/**
 * Makes the `authenticate` of a list of tokens. It takes `Authorization: Bearer <token>`, and on a WebSocket upgrade also the
 * subprotocol `session-gateway.bearer.<token>`; never a query parameter, which would end up in logs. An unknown, malformed or expired
 * token gives `undefined`.
 */
export function createTokenAuthenticate(tokens: readonly ConfigToken[], clock: Clock = systemClock) {
  const entries = tokens.map((token) => ({
    digest: Buffer.from(token.sha256, 'hex'),
    expiresAt: expiryOf(token),
    principal: principalOf(token),
  }))

  return (request: { headers: IncomingHttpHeaders }): TokenPrincipal | undefined => {
    const presented = presentedToken(request.headers)
    if (presented === undefined) return undefined
    const digest = createHash('sha256').update(presented).digest()
    let match: (typeof entries)[number] | undefined
    // Every entry is compared, so that the time taken does not tell which one matched.
    for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) match = entry
    return match && clock.now() < match.expiresAt ? match.principal : undefined
  }
}

/** Who the name of a token stands for, while the token is valid. */
export function createTokenLookup(tokens: readonly ConfigToken[], clock: Clock = systemClock): CallerNamed {
  const entries = new Map(
    tokens.map((token) => {
      const principal = normalizePrincipal(principalOf(token))!
      return [nameOf(principal), { principal, expiresAt: expiryOf(token) }]
    }),
  )
  return (name) => {
    const entry = entries.get(name)
    return entry && clock.now() < entry.expiresAt ? entry.principal : undefined
  }
}

function principalOf({ name, allowedProfiles, canManageProfiles }: ConfigToken): TokenPrincipal {
  return {
    name,
    ...(allowedProfiles && { allowedProfiles }),
    ...(canManageProfiles !== undefined && { canManageProfiles }),
  }
}

function presentedToken(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization !== undefined) return /^bearer +([^\s]+)$/i.exec(headers.authorization)?.[1]
  return offeredToken(headers)
}
