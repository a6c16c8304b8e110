import type { FastifyRequest } from 'fastify'
import type { FoundSignIn, SignIns } from '../src/console/sign-ins.js'
import { GatewayError, hasCode } from '../src/errors.js'
import { offeredToken } from '../src/lib/offered-token.js'
import type { Identify } from './auth.js'
import type { IsOwnOrigin } from './origins.js'
import { isUpgrade } from './upgrades.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The sign-in whose cookie let this request in. */
    signInId?: string
  }
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])
const FOREIGN =
  'The sign-in of the console works from its own page: the Origin must be this gateway. Behind a proxy, pass the Host header on with its port, or set notifications.publicUrl.'

/**
 * Lets a browser in that is signed in to the console, as whoever its token stands for by now: `authenticate` is asked about the token
 * as if it had been sent. A request that shows a token itself is judged by that.
 */
export function signedIn(identify: Identify, signIns: SignIns, isOwnOrigin: IsOwnOrigin): Identify {
  return async (request) => {
    const mayHave = !showsToken(request) && request.headers.cookie?.includes(signIns.cookieName)
    const refreshed = mayHave ? signIns.refreshed() : undefined
    if (refreshed) await refreshed
    const found = mayHave ? findSignIn(request, signIns) : undefined
    if (!found) {
      // a stream that was let in by a sign-in does not outlast it
      if (request.signInId !== undefined) throw new GatewayError('SG_ERR_UNAUTHENTICATED')
      return identify(request)
    }
    if (!mayUse(request, isOwnOrigin)) return withoutCookie(request, identify)
    if (WITH_BODY.has(request.method) && !isJson(request)) throw new GatewayError('SG_ERR_UNSUPPORTED_MEDIA_TYPE')
    try {
      const principal = await identify(withToken(request, found.token))
      request.signInId = found.id
      return principal
    } catch (error) {
      if (hasCode(error, 'SG_ERR_UNAUTHENTICATED')) signIns.lapse(found.id)
      throw error
    }
  }
}

/** By itself, and not by the cookie that a browser puts beside it. */
const showsToken = ({ headers }: FastifyRequest): boolean =>
  headers.authorization !== undefined || offeredToken(headers) !== undefined

/** The request as it would be with the token in it; the one that is logged and kept is not changed. */
export function withToken(request: FastifyRequest, token: string): FastifyRequest {
  const headers = { value: { ...request.headers, authorization: `Bearer ${token}` } }
  return Object.create(request, { headers, raw: { value: Object.create(request.raw, { headers }) } }) as FastifyRequest
}

/** What lets other origins in is nothing to the sign-in, so that the usual sentence would send people astray. */
export const foreignOrigin = () => new GatewayError('SG_ERR_ORIGIN_REFUSED', { detail: FOREIGN })

/** A page of another origin shows its own credentials, or none: the cookie, which a neighbour on the same site sends too, is not one. */
async function withoutCookie(request: FastifyRequest, identify: Identify) {
  try {
    return await identify(request)
  } catch (error) {
    if (!hasCode(error, 'SG_ERR_UNAUTHENTICATED')) throw error
    throw foreignOrigin()
  }
}

/** What only reads may come without an Origin, as browsers send it. */
function mayUse(request: FastifyRequest, isOwnOrigin: IsOwnOrigin): boolean {
  if (request.headers.origin === undefined) return SAFE.has(request.method) && !isUpgrade(request)
  return isOwnOrigin(request)
}

const isJson = ({ headers }: FastifyRequest): boolean =>
  /^application\/json\s*(?:;|$)/i.test(headers['content-type']?.trim() ?? '')

/** The sign-in that the browser has, whatever page it asks for. */
export function findSignIn({ headers }: FastifyRequest, signIns: SignIns): FoundSignIn | undefined {
  for (const secret of cookiesOf(headers.cookie ?? '', signIns.cookieName)) {
    const found = signIns.find(secret)
    if (found) return found
  }
  return undefined
}

/** Every cookie of that name; those of the longest path come first. */
function* cookiesOf(header: string, name: string): Generator<string> {
  for (const part of header.split(';')) {
    const [key = '', value = ''] = part.trim().split('=', 2)
    if (key === name) yield value
  }
}

export interface CookieAttributes {
  path: string
  isSecure: boolean
  /** 0 takes it away. */
  maxAgeMs: number
}

/** The header `Set-Cookie`: no script reads it, and no other site's page has it sent. */
export const signInCookie = (name: string, secret: string, { path, isSecure, maxAgeMs }: CookieAttributes): string =>
  `${name}=${secret}; Path=${path}; Max-Age=${Math.floor(maxAgeMs / 1000)}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
