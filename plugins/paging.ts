import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Page } from '../src/lib/paging.js'

/**
 * Announces the next page in `Link`; the body stays the plain array.
 * @param parameter of the query that says where the next page begins
 */
export function linkNext<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { items, next }: Page<T>,
  parameter = 'cursor',
): T[] {
  if (next !== undefined) {
    const url = new URL(request.url, 'http://host')
    url.searchParams.set(parameter, next)
    reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
  }
  return items
}
