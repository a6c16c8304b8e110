import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ListSdkSessionsQuery, SdkSession } from '../schemas/sdk-sessions.js'
import type { Gateway } from '../src/gateway.js'

/** The sessions that agents keep on disk and that a create can resume. */
export const sdkSessionRoutes: FastifyPluginAsyncTypebox<{ gateway: Gateway }> = async (scope, { gateway }) => {
  scope.get(
    '/sdk-sessions',
    { schema: { querystring: ListSdkSessionsQuery, response: { 200: Type.Array(SdkSession) } } },
    async ({ query, principal }) => gateway.cliProfiles.listSdkSessions(query, principal),
  )
}
