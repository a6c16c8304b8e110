import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { UsageQuery, UsageReport } from '../schemas/usage.js'
import type { Gateway } from '../src/gateway.js'
import { usageCsv } from '../src/usage/csv.js'
import { answerAsAccepted, prefers } from './accept.js'

/** What was used: as JSON, or as CSV for who asks for that. */
export const usageRoutes: FastifyPluginAsyncTypebox<{ gateway: Gateway }> = async (scope, { gateway }) => {
  scope.get(
    '/usage',
    { schema: { querystring: UsageQuery, response: { 200: UsageReport } } },
    async (request, reply) => {
      const report = await gateway.usage.report(request.query, request.principal)
      answerAsAccepted(reply)
      if (!prefers('text/csv', request.headers.accept)) return report
      const name = `usage-${report.from}-${report.to}.csv`
      const body = Buffer.from(usageCsv(report))
      reply.header('content-disposition', `attachment; filename="${name}"`).header('x-content-type-options', 'nosniff')
      return reply.type('text/csv; charset=utf-8').send(body as never)
    },
  )
}
