import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { idOf } from '../src/idempotency/scope.js'
import type { Clock } from '../src/lib/clock.js'
import { within } from '../src/lib/within.js'
import type { Authenticate } from '../src/options.js'
import { NOBODY, nameOf, normalizePrincipal, type Principal, UNLIMITED } from '../src/principal.js'
import { stays } from './connections.js'
import { upgradeRefusals } from './edge.js'
import { ownOrigins } from './origins.js'
import { addToRequests } from './request-members.js'
import { signedIn } from './sign-in-cookie.js'
import { isUpgrade } from './upgrades.js'

const AUTHENTICATE_MS = 10_000

/**
 * Decides who is asking, for HTTP requests, upgrades and every command that comes over a socket later.
 * @throws SG_ERR_UNAUTHENTICATED, SG_ERR_AUTHENTICATE_FAILED when the hook throws, does not settle in 10 s or returns what cannot be read
 */
export type Identify = (request: FastifyRequest) => Principal | Promise<Principal>

export function createIdentify(gateway: Gateway): Identify {
  const { options, clock, signIns } = gateway
  const { authenticate } = options
  if (!authenticate) return () => UNLIMITED
  const identify: Identify = async (request) => {
    const principal = readable(await ask(authenticate, request, clock))
    if (!principal) throw new GatewayError('SG_ERR_UNAUTHENTICATED')
    return principal
  }
  return signIns ? signedIn(identify, signIns, ownOrigins(gateway)) : identify
}

async function ask(authenticate: Authenticate, request: FastifyRequest, clock: Clock): Promise<unknown> {
  try {
    const answer = authenticate(asGiven(request))
    if (!isPromise(answer)) return answer
    const onLate = () => {
      throw new Error('authenticate did not settle in 10 s')
    }
    return await within(AUTHENTICATE_MS, answer, { clock, onLate })
  } catch (error) {
    throw new GatewayError('SG_ERR_AUTHENTICATE_FAILED', { cause: error })
  }
}

/** What is read of it later is read now: a getter that throws then would do so in the middle of what was asked, or in the log. */
function readable(claims: unknown): Principal | undefined {
  try {
    const principal = normalizePrincipal(claims)
    nameOf(principal)
    idOf(claims)
    return principal
  } catch (error) {
    throw error instanceof GatewayError ? error : new GatewayError('SG_ERR_AUTHENTICATE_FAILED', { cause: error })
  }
}

/** What a hook of the host had set as `request.principal`, for requests that are asked about again: those of sockets and streams. */
const ofHost = new WeakMap<FastifyRequest, unknown>()

/** The request as the host gave it. */
const asGiven = (request: FastifyRequest): FastifyRequest =>
  ofHost.has(request) ? Object.create(request, { principal: { value: ofHost.get(request), writable: true } }) : request

const isNowhere = ({ is404, routeOptions }: FastifyRequest): boolean => is404 || routeOptions.config.isNowhere === true

const isPromise = <T>(value: T | Promise<T>): value is Promise<T> => typeof (value as Promise<T>)?.then === 'function'

/** Whether somebody asks, and not a page by itself: it says so, and makes its connections anew whoever looks. */
const isUse = (request: FastifyRequest): boolean => request.headers['x-unattended'] === undefined && !stays(request)

/**
 * Every route of the scope, upgrades and unknown paths included, is behind this hook. Who is let in is told that there is no such path, or
 * that it is no WebSocket, before anything of a body is read. Async only where there is something to wait for.
 */
export function requireIdentity(scope: FastifyInstance, gateway: Gateway, identify: Identify): void {
  const { signIns } = gateway
  const refuseUpgrade = upgradeRefusals(gateway)
  addToRequests(scope, 'principal')
  const enter = (request: FastifyRequest, principal: Principal): GatewayError | undefined => {
    if (request.principal !== undefined) ofHost.set(request, request.principal)
    request.principal = principal
    if (request.signInId !== undefined && isUse(request)) signIns?.use(request.signInId)
    return isUpgrade(request) && !isNowhere(request) ? refuseUpgrade(request) : undefined
  }
  scope.addHook('onRequest', (request, reply, done) => {
    // what another node asks for may be left to it
    if (gateway.draining && !request.hop) return done(new GatewayError('SG_ERR_SHUTTING_DOWN'))
    keepFromCaches(request, reply)
    const caller = callerOf(request, identify)
    if (isPromise(caller)) caller.then((principal) => done(enter(request, principal)), done)
    else done(enter(request, caller))
  })
}

/** What one caller is shown is nobody else's, and a cache between them cannot know: callers may have cookies, or an address, for a name. */
export function keepFromCaches({ routeOptions }: FastifyRequest, reply: FastifyReply): void {
  if (routeOptions.config?.isPublic || reply.hasHeader('cache-control')) return
  reply.header('cache-control', 'no-store')
}

function callerOf(request: FastifyRequest, identify: Identify): ReturnType<Identify> {
  // it is made anew each time
  const { config } = request.routeOptions
  if (config?.isPublic) return NOBODY
  if (!config?.forNodes) return identify(request)
  // a node in its own name, and nobody through one: for everybody else there is nothing here, told to who is let in
  if (request.hop !== undefined && request.hop.client === undefined) return UNLIMITED
  const caller = identify(request)
  return isPromise(caller) ? caller.then(refuseAsNowhere) : refuseAsNowhere()
}

function refuseAsNowhere(): never {
  throw new GatewayError('SG_ERR_NOT_FOUND')
}
