import type { FastifyRequest } from 'fastify'
import type { Gateway } from '../src/gateway.js'
import { hostOf } from './http-versions.js'

/**
 * Whether a request comes from a page of this gateway: of the host that it was sent to, as a proxy that its server trusts says, too, or of the
 * one that people know it under.
 */
export type IsOwnOrigin = (request: FastifyRequest) => boolean

export function ownOrigins({ options }: Gateway): IsOwnOrigin {
  const { publicUrl } = options.notifications ?? {}
  const known = publicUrl !== undefined && URL.canParse(publicUrl) ? new URL(publicUrl).origin : undefined
  return ({ raw, host, headers: { origin } }) =>
    origin !== undefined && (origin === known || isOwn(origin, hostOf(raw)) || isOwn(origin, host))
}

/** `null`, and what is no web origin, is nobody's. */
function isOwn(origin: string, host: string | undefined): boolean {
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || host === undefined) return false
  const own = `${url.protocol}//${host}`
  return URL.canParse(own) && new URL(own).host === url.host && url.origin === origin.toLowerCase()
}
