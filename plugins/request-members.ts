import type { FastifyInstance } from 'fastify'

/**
 * Adds a member of the gateway's own to the requests of a scope.
 * @throws when the host has one of that name: shared, it would be the host's word to the gateway and the gateway's to the host
 */
export function addToRequests(scope: FastifyInstance, name: string): void {
  if (scope.hasRequestDecorator(name))
    throw new Error(
      `session-gateway sets request.${name} on its routes, and this host decorates requests with one of its own: give yours another name, or set it in a scope beside the gateway.`,
    )
  scope.decorateRequest(name)
}
