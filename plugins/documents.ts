import type { FastifyInstance, FastifyPluginAsync, FastifySchema } from 'fastify'
import fp from 'fastify-plugin'
import { asyncApi } from '../src/documents/asyncapi.js'
import { openApi, type Route } from '../src/documents/openapi.js'
import type { Feature } from '../src/documents/operations.js'
import type { Gateway } from '../src/gateway.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Served to who shows no credentials. */
    isPublic?: boolean
  }
}

/** The documents that describe this API, generated from the schemas that its routes check with. */
export const apiDocuments: FastifyPluginAsync<{ gateway: Gateway }> = fp(
  async (scope: FastifyInstance, { gateway }: { gateway: Gateway }) => {
    const routes = collectRoutes(scope)
    const features = featuresOf(gateway)
    const isPublic = gateway.options.docs === true
    const serve = (path: string, make: () => object) => {
      let document: string | undefined
      scope.get(path, { config: { isPublic } }, async (_request, reply) => {
        document ??= JSON.stringify(make())
        return reply.type('application/json; charset=utf-8').send(document)
      })
    }
    const outside = scope.prefix.slice(0, scope.prefix.length - gateway.options.basePath.length)
    serve('/openapi.json', () => openApi(routes, { prefix: scope.prefix, outside }, features))
    serve('/asyncapi.json', () => asyncApi(scope.prefix, features))
  },
)

export function featuresOf({ queue, options, notifications }: Gateway): Set<Feature> {
  const features = new Set<Feature>()
  if (queue) features.add('queue')
  if (options.profileStore) features.add('profileStore')
  if (options.health) features.add('health')
  if (options.metrics) features.add('metrics')
  if (notifications.push) features.add('webPush')
  return features
}

/** Every route that the scope gets from here on; a document of the host's own, which may read other schemas, leaves them out. */
function collectRoutes(scope: FastifyInstance): Route[] {
  const routes: Route[] = []
  scope.addHook('onRoute', (options) => {
    const { method, url, schema, config } = options
    const path = url.slice(scope.prefix.length)
    const { idempotent } = config ?? {}
    if (typeof method === 'string')
      routes.push({ method, path, ...(schema as Partial<Route>), ...(idempotent && { idempotent }) })
    options.schema = { ...schema, hide: true } as FastifySchema
  })
  return routes
}
