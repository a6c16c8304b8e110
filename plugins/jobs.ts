import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  CreateJobRequest,
  JobInfo,
  JobParams,
  ListJobsQuery,
  NextJobsQuery,
  QueueStats,
  WebhookDelivery,
} from '../schemas/jobs.js'
import { NoQuery } from '../schemas/sessions.js'
import { type Cluster, wasUnheard } from '../src/cluster/cluster.js'
import { GatewayError } from '../src/errors.js'
import { JobElsewhere } from '../src/jobs/elsewhere.js'
import type { JobQueue } from '../src/jobs/queue.js'
import type { ClusterNode } from '../src/storage/cluster.js'
import { clientOf } from './hops.js'
import { ownPlace } from './own-place.js'
import { linkNext } from './paging.js'

type Asks = Pick<Cluster, 'ask'>

/** Jobs over REST; there are none without a queue. */
export const jobRoutes: FastifyPluginAsyncTypebox<{ queue: JobQueue; cluster?: Asks | undefined }> = async (
  scope,
  { queue, cluster },
) => {
  scope.get(
    '/jobs',
    { schema: { querystring: ListJobsQuery, response: { 200: Type.Array(JobInfo) } } },
    async (request, reply) => linkNext(request, reply, await queue.page(request.query, request.principal)),
  )

  scope.post(
    '/jobs',
    { config: { idempotent: true }, schema: { body: CreateJobRequest, response: { 201: JobInfo } } },
    async (request, reply) => {
      const { body, principal, takenKey } = request
      const job = await queue.submit(body, { principal, takenKey })
      return reply
        .code(201)
        .header('location', `${ownPlace(scope.prefix, request)}/jobs/${job.id}`)
        .send(job)
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
    async (request, reply) => {
      const { id } = await queue.visibleJob(request.params.id, request.principal)
      for (let removed: string | undefined; ; )
        try {
          return await queue.cancel(id, removed)
        } catch (error) {
          if (!(error instanceof JobElsewhere)) throw error
          // another node has claimed it since this one was found to be the one to ask
          if (!cluster || request.hop) throw new GatewayError('SG_ERR_WRONG_NODE')
          if (!error.sessionId) return passOn(cluster, error.node, request, reply)
          await removeSession(cluster, error.node, error.sessionId, request)
          removed = error.sessionId
        }
    },
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

  scope.get(
    '/queue/next',
    { schema: { querystring: NextJobsQuery, response: { 200: Type.Array(JobInfo) } } },
    async ({ query, principal }) => queue.next(query, principal),
  )
}

/** @throws SG_ERR_NODE_UNREACHABLE when the other node does not have it any more, either · SG_ERR_NODE_LOST when it does not answer */
async function passOn(
  cluster: Asks,
  node: ClusterNode,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const answer = await ask(cluster, node, request, request.raw.url ?? '')
  const body = Buffer.from(await answer.arrayBuffer().catch(lost))
  for (const name of ['content-type', 'retry-after']) {
    const value = answer.headers.get(name)
    if (value !== null) reply.header(name, value)
  }
  return reply.code(answer.status as 200).send(body as never)
}

/** Before its job is over: when that fails, nothing was done, and whoever cancels comes again. @throws as `passOn` */
async function removeSession(cluster: Asks, node: ClusterNode, id: string, request: FastifyRequest): Promise<void> {
  const [url = ''] = (request.raw.url ?? '').split('?')
  const answer = await ask(cluster, node, request, `${url.slice(0, url.lastIndexOf('/jobs/'))}/sessions/${id}`)
  await answer.arrayBuffer().catch(lost)
  if (!answer.ok && answer.status !== 404) throw unreachable()
}

async function ask(cluster: Asks, node: ClusterNode, request: FastifyRequest, path: string): Promise<Response> {
  const { method, headers } = request
  const answer = await cluster.ask(node, { method, path, headers, client: clientOf(request) }).catch(lost)
  if (answer.status === 421) throw unreachable()
  return answer
}

const unreachable = (cause?: unknown) => new GatewayError('SG_ERR_NODE_UNREACHABLE', { cause })

const lost = (error: unknown): never => {
  throw wasUnheard(error) ? unreachable(error) : new GatewayError('SG_ERR_NODE_LOST', { cause: error })
}
