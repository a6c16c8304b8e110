import { join } from 'node:path'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { BuiltFiles, INDEX, NOT_BUILT_PAGE } from '../src/console/built-files.js'
import { GatewayError } from '../src/errors.js'
import { PACKAGE_ROOT } from '../src/lib/package-root.js'
import { variesBy } from './accept.js'

/** Where `npm run build` puts the application. */
const BUILT = join(PACKAGE_ROOT, 'dist', 'console')

/**
 * Everything comes from here, and nothing that runs is written into the page. The console makes no HTML of a string, so that no policy may
 * but `console`, which gives the address of the worker that receives push messages.
 */
export const CONSOLE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types console',
].join('; ')

const HEADERS = {
  'content-security-policy': CONSOLE_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}
const FOR_EVER = 'public, max-age=31536000, immutable'

/** The built application, for everybody: it holds nothing but itself. */
export const consoleFiles: FastifyPluginAsync<{ folder?: string }> = async (scope, { folder = BUILT }) => {
  const files = new BuiltFiles(folder)
  const config = { isPublic: true }

  async function serve(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply> {
    const file = await files.find(name, request.headers['accept-encoding']?.toString())
    variesBy(reply.headers(HEADERS), 'Accept-Encoding')
    if (!file) {
      if (name !== '' && name !== INDEX) throw new GatewayError('SG_ERR_NOT_FOUND')
      return reply.code(404).header('cache-control', 'no-store').type('text/html; charset=utf-8').send(NOT_BUILT_PAGE)
    }
    const { type, body, etag, encoding, isHashed } = file
    reply.headers({ etag, 'cache-control': isHashed ? FOR_EVER : 'no-cache' })
    if (encoding) reply.header('content-encoding', encoding)
    if (isKnown(request, etag)) return reply.code(304).send()
    return reply.type(type).send(body)
  }

  scope.get<{ Params: { '*': string } }>('/console/*', { config }, (request, reply) =>
    serve(request, reply, request.params['*']),
  )

  // relative, so that it leads there behind whatever a proxy puts before it
  scope.get('/console', { config }, async (request, reply) => {
    const isFolder = new URL(request.url, 'http://host').pathname.endsWith('/')
    return isFolder ? serve(request, reply, '') : reply.redirect('console/', 308)
  })
}

const isKnown = ({ headers }: FastifyRequest, etag: string): boolean =>
  (headers['if-none-match'] ?? '').split(',').some((known) => known.trim().replace(/^W\//, '') === etag)
