import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Page } from '../src/lib/paging.js'

/** Announces the next page in `Link`; the body stays the plain array. */
export function linkNext<T>(request: FastifyRequest, reply: FastifyReply, { items, next }: Page<T>): T[] {
  if (next !== undefined) {
    const url = new URL(request.url, 'http://host')
    url.searchParams.set('cursor', next)
    reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
  }
  return items
}
