import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { CreateJobRequest, JobInfo, JobParams, ListJobsQuery, QueueStats, WebhookDelivery } from '../schemas/jobs.js'
import { NoQuery } from '../schemas/sessions.js'
import type { JobQueue } from '../src/jobs/queue.js'
import { linkNext } from './paging.js'

/** Jobs over REST; there are none without a queue. */
export const jobRoutes: FastifyPluginAsyncTypebox<{ queue: JobQueue }> = async (scope, { queue }) => {
  scope.get(
    '/jobs',
    { schema: { querystring: ListJobsQuery, response: { 200: Type.Array(JobInfo) } } },
    async (request, reply) => linkNext(request, reply, await queue.page(request.query, request.principal)),
  )

  scope.post(
    '/jobs',
    { config: { idempotent: true }, schema: { body: CreateJobRequest, response: { 201: JobInfo } } },
    async ({ body, principal, takenKey }, reply) => {
      const job = await queue.submit(body, { principal, takenKey })
      return reply.code(201).header('location', `${scope.prefix}/jobs/${job.id}`).send(job)
    },
  )

  scope.get(
    '/jobs/:id',
    { config: { owner: 'job' }, schema: { params: JobParams, response: { 200: JobInfo } } },
    async ({ params, principal }) => queue.visibleJob(params.id, principal),
  )

  scope.delete(
    '/jobs/:id',
    { config: { owner: 'job' }, schema: { params: JobParams, response: { 200: JobInfo } } },
    async ({ params, principal }) => queue.cancel((await queue.visibleJob(params.id, principal)).id),
  )

  scope.get(
    '/jobs/:id/deliveries',
    {
      config: { owner: 'job' },
      schema: { params: JobParams, querystring: NoQuery, response: { 200: Type.Array(WebhookDelivery) } },
    },
    async ({ params, principal }) => queue.deliveries((await queue.visibleJob(params.id, principal)).id),
  )

  scope.get('/queue', { schema: { response: { 200: QueueStats } } }, async ({ principal }) => queue.stats(principal))
}
