import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { hostOf } from './http-versions.js'
import { ownOrigins } from './origins.js'
import { isUpgrade } from './upgrades.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Marks a route that is a WebSocket. */
    socket?: boolean
  }
}

/** Serves only the hosts that are allowed, so that a name which an attacker points here reaches nothing. */
export function guardHost(scope: FastifyInstance, { options }: Gateway): void {
  const { allowedHosts } = options
  if (!allowedHosts) return
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  scope.addHook('onRequest', (request, _reply, done) => {
    // judged by the node that it came to first
    if (request.hop) return done()
    const host = hostOf(request.raw)?.toLowerCase() ?? ''
    const isAllowed = allowed.has(host) || allowed.has(withoutPort(host))
    done(isAllowed ? undefined : new GatewayError('SG_ERR_HOST_REFUSED'))
  })
}

const withoutPort = (host: string): string => host.replace(/:\d+$/, '')

/** What an upgrade is refused with before the 101: for where it comes from, to what, and that it is no handshake of a WebSocket at all. */
export function upgradeRefusals(gateway: Gateway): (upgrade: FastifyRequest) => GatewayError | undefined {
  const { allowedOrigins = [], cors } = gateway.options
  const listed = new Set([...allowedOrigins, ...(cors?.origins ?? [])])
  const isOwn = ownOrigins(gateway)
  // absent: no browser; what another node passes on was judged by it
  const isAllowed = (request: FastifyRequest) => {
    const { origin } = request.headers
    return request.hop !== undefined || origin === undefined || listed.has(origin) || isOwn(request)
  }
  return (request) => {
    if (!isAllowed(request)) return new GatewayError('SG_ERR_ORIGIN_REFUSED')
    if (!request.routeOptions.config.socket) return badRequest('This path is no WebSocket.')
    return handshakeRefusal(request)
  }
}

const badRequest = (detail: string) => new GatewayError('SG_ERR_BAD_REQUEST', { detail })

/** A route that is a socket serves nothing else. */
export function requireUpgrade(scope: FastifyInstance): void {
  scope.addHook('onRequest', (request, _reply, done) => {
    const isMissing = request.routeOptions.config.socket && !isUpgrade(request)
    done(isMissing ? new GatewayError('SG_ERR_UPGRADE_REQUIRED') : undefined)
  })
}

/** What `ws` would refuse by itself, in a form of its own. */
function handshakeRefusal({ method, headers }: FastifyRequest): GatewayError | undefined {
  const { upgrade, 'sec-websocket-version': version, 'sec-websocket-key': key = '' } = headers
  if (method !== 'GET' || upgrade?.toLowerCase() !== 'websocket') return badRequest(NO_HANDSHAKE)
  // RFC 6455, 4.2.2
  if (version !== '13') return new GatewayError('SG_ERR_UPGRADE_REQUIRED', { detail: NOT_OURS })
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key)) return badRequest(NO_HANDSHAKE)
  return areSubprotocols(headers['sec-websocket-protocol']) ? undefined : badRequest(NO_SUBPROTOCOLS)
}

const NO_HANDSHAKE = 'This is no handshake of a WebSocket.'
const NOT_OURS = 'Only version 13 of WebSockets is spoken here.'
const NO_SUBPROTOCOLS = 'Sec-WebSocket-Protocol has to be a list of tokens, each of them once.'

/** Tokens with commas between them, none of them twice. */
function areSubprotocols(offered: string | undefined): boolean {
  if (offered === undefined) return true
  const names = offered.split(/[ \t]*,[ \t]*/)
  return names.every((name) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) && new Set(names).size === names.length
}
