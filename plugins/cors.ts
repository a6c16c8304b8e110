import type { OutgoingHttpHeaders } from 'node:http'
import cors, { type FastifyCorsOptions, type FastifyCorsOptionsDelegateCallback } from '@fastify/cors'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { optionError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'

/** What a page may read of an answer beyond its body and type. */
const EXPOSED = [
  'Link',
  'Location',
  'Retry-After',
  'Idempotent-Replayed',
  'WWW-Authenticate',
  'Allow',
  'Content-Disposition',
]
const PREFLIGHT_S = 600
const OF_HOST =
  'this host has @fastify/cors for all of its routes, those of the gateway too. Leave cors out, list these origins there, and in allowedOrigins for sockets; or register @fastify/cors in a scope beside the gateway.'
const OFF: FastifyCorsOptions = { origin: false }

/**
 * Lets pages of other origins use the API: exactly those that are listed. Their preflights, which carry no credentials, are answered here;
 * everything else goes on to be authenticated.
 */
export function allowOrigins(scope: FastifyInstance, { options }: Gateway): void {
  const origins = new Set(options.cors?.origins)
  if (origins.size === 0) return
  // its hook comes first, and answers every preflight in the name of the host
  if (scope.hasRequestDecorator('corsPreflightEnabled')) throw optionError('cors', OF_HOST)
  const allowed = (origin: string, preflight: boolean, wanted: string | undefined): FastifyCorsOptions => ({
    origin,
    preflight,
    credentials: true,
    ...(wanted !== undefined && { allowedHeaders: ofPages(wanted) }),
    methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_S,
  })
  const delegator: FastifyCorsOptionsDelegateCallback = ({ headers }, done) => {
    const { origin } = headers
    const isPreflight = headers['access-control-request-method'] !== undefined
    const wanted = headers['access-control-request-headers']?.toString()
    done(null, origin !== undefined && origins.has(origin) ? allowed(origin, isPreflight, wanted) : OFF)
  }
  // its route for every path below the prefix would also be one for paths of the host that begin alike; every path of ours has one
  const withoutRoute = Object.assign(Object.create(scope) as FastifyInstance, { options: () => scope })
  cors(withoutRoute, { delegator }, (error) => {
    if (error) throw error
  })
}

/** Those that a page may send. What a proxy says of whoever asks is not for it to say: by the host in that, a page is the gateway's own. */
const ofPages = (wanted: string): string =>
  wanted
    .split(',')
    .filter((name) => !/^\s*(?:x-)?forwarded/i.test(name))
    .join()

/** What was set for the answer, for one that is written past Fastify. */
export const corsHeaders = (reply: FastifyReply): OutgoingHttpHeaders => reply.getHeaders() as OutgoingHttpHeaders
