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
    // a host may take several slashes for one; two at the beginning are a server's name to whoever reads a link
    const url = new URL(request.url.replace(/^\/{2,}/, '/'), 'http://host')
    url.searchParams.set(parameter, next)
    reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
  }
  return items
}
