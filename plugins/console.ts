import rateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { ConsoleMe, ConsoleStatus, SignInInfo, SignInParams, SignInRequest, SignOutQuery } from '../schemas/console.js'
import { NoQuery } from '../schemas/sessions.js'
import { hashOfSecret } from '../src/console/secrets.js'
import type { SignIns } from '../src/console/sign-ins.js'
import { statusOf } from '../src/console/status.js'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { mayManage, nameOf, type Principal, visibleProfiles } from '../src/principal.js'
import type { Identify } from './auth.js'
import { consoleFiles } from './console-files.js'
import { featuresOf } from './documents.js'
import { ownOrigins } from './origins.js'
import { ownPlace } from './own-place.js'
import { findSignIn, foreignOrigin, signInCookie, withToken } from './sign-in-cookie.js'

/** Sign-ins with one token, a minute, and from one address with tokens that let nobody in. */
const MAX_PER_MINUTE = 30

interface ConsoleParts {
  gateway: Gateway
  identify: Identify
}

/** The console: its files, who is asking, and the sign-ins of browsers where somebody decides who is let in. */
export const consoleRoutes: FastifyPluginAsyncTypebox<ConsoleParts> = async (scope, { gateway, identify }) => {
  await scope.register(consoleFiles)

  scope.get(
    '/console/me',
    { config: { isPublic: true }, schema: { querystring: NoQuery, response: { 200: ConsoleMe } } },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const required = gateway.options.authenticate !== undefined
      const principal = await letIn(request, identify)
      if (!principal) return { required, authenticated: false }
      const signIn = gateway.signIns?.list(principal, request.signInId).find(({ current }) => current)
      const features = featuresOf(gateway)
      return {
        ...{ required, authenticated: true, caller: callerOf(principal, features.has('profileStore')) },
        ...(signIn && { signIn }),
        features: {
          queue: features.has('queue'),
          profileStore: features.has('profileStore'),
          webPush: features.has('webPush'),
        },
      }
    },
  )

  scope.get(
    '/console/status',
    { schema: { querystring: NoQuery, response: { 200: ConsoleStatus } } },
    async ({ principal }) => {
      if (visibleProfiles(principal)) throw new GatewayError('SG_ERR_METRICS_FORBIDDEN')
      return statusOf(gateway)
    },
  )

  const { signIns } = gateway
  if (signIns) await scope.register(signInRoutes, { gateway, identify, signIns })
}

/** @returns undefined for who is not let in */
async function letIn(request: FastifyRequest, identify: Identify): Promise<Principal | undefined> {
  try {
    return await identify(request)
  } catch (error) {
    if (error instanceof GatewayError && error.statusCode < 500) return undefined
    throw error
  }
}

function callerOf(principal: Principal, hasStore: boolean) {
  const name = nameOf(principal)
  const allowedProfiles = visibleProfiles(principal)
  return {
    ...(name !== undefined && { name }),
    ...(allowedProfiles && { allowedProfiles }),
    canManageProfiles: hasStore && mayManage(principal),
    isLimited: allowedProfiles !== undefined,
  }
}

const signInRoutes: FastifyPluginAsyncTypebox<ConsoleParts & { signIns: SignIns }> = async (
  scope,
  { gateway, identify, signIns },
) => {
  const isOwnOrigin = ownOrigins(gateway)
  const { publicUrl = '' } = gateway.options.notifications ?? {}
  const cookieFor = (request: FastifyRequest, path = ownPlace(scope.prefix, request)) => ({
    path: path.replace(/(?<=.)\/$/, '') || '/',
    isSecure: (request.headers.origin ?? `${request.protocol}:`).startsWith('https:') || publicUrl.startsWith('https:'),
  })

  const enter = async (request: FastifyRequest, token: string): Promise<Principal> => {
    // a page elsewhere is not to sign anybody in, as itself
    if (request.headers.origin !== undefined && !isOwnOrigin(request)) throw foreignOrigin()
    // what cannot stand in the header stands for nobody
    if (!/^[!-~]+$/.test(token)) throw new GatewayError('SG_ERR_UNAUTHENTICATED')
    return identify(withToken(request, token))
  }

  await scope.register(async (limited: typeof scope) => {
    const entering = new WeakMap<FastifyRequest, Promise<Principal>>()
    await limited.register(rateLimit, {
      max: MAX_PER_MINUTE,
      timeWindow: 60_000,
      hook: 'preHandler',
      // behind a proxy all have one address: who guesses there keeps nobody out who has a token
      keyGenerator: (request) => {
        const { token } = request.body as SignInRequest
        const principal = enter(request, token)
        entering.set(request, principal)
        return principal.then(
          () => hashOfSecret(token),
          // a Unix socket has no addresses
          () => normalizeIP(request.ip ?? ''),
        )
      },
      errorResponseBuilder: (_request, { ttl }) =>
        new GatewayError('SG_ERR_TOO_MANY', { retryAfterS: Math.ceil(ttl / 1000) }),
    })
    limited.post(
      '/console/sessions',
      { config: { isPublic: true }, schema: { body: SignInRequest, response: { 201: SignInInfo } } },
      async (request, reply) => {
        const { token, path } = request.body
        const principal = await entering.get(request)!
        const before = findSignIn(request, signIns)
        const { secret, signIn, maxAgeMs } = await signIns.create(token, principal, request.headers['user-agent'])
        // whose cookie this one takes the place of: a page that is open beside this one would show one caller and ask as another.
        // Not before the new cookie is there, with which it goes on
        if (before) reply.raw.once('finish', () => signIns.replaced(before.id))
        const cookie = signInCookie(signIns.cookieName, secret, { ...cookieFor(request, path), maxAgeMs })
        return reply
          .code(201)
          .headers({ 'set-cookie': cookie, 'cache-control': 'no-store' })
          .send({ ...signIn, current: true })
      },
    )
  })

  scope.get(
    '/console/sessions',
    { schema: { querystring: NoQuery, response: { 200: Type.Array(SignInInfo) } } },
    async ({ principal, signInId }) => {
      const refreshed = signIns.refreshed()
      if (refreshed) await refreshed
      return signIns.list(principal, signInId)
    },
  )

  scope.delete(
    '/console/sessions/:id',
    { config: { owner: 'any' }, schema: { params: SignInParams, querystring: SignOutQuery } },
    async (request, reply) => {
      const { signInId, principal, params, query } = request
      const id = params.id === 'current' ? (signInId ?? '') : params.id
      await signIns.end(id, principal, signInId)
      if (id === signInId)
        reply.header(
          'set-cookie',
          signInCookie(signIns.cookieName, '', { ...cookieFor(request, query.path), maxAgeMs: 0 }),
        )
      return reply.code(204).send()
    },
  )
}
