import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { WebhookDelivery } from '../schemas/jobs.js'
import {
  AnswerInboxResponse,
  InboxCount,
  InboxItem,
  ListInboxQuery,
  ListNotificationsQuery,
  NotificationParams,
  SessionNotification,
  UncheckedAnswers,
} from '../schemas/notifications.js'
import { NoQuery } from '../schemas/sessions.js'
import type { Cluster } from '../src/cluster/cluster.js'
import type { Gateway } from '../src/gateway.js'
import { inParts } from '../src/idempotency/parts.js'
import { ANSWERS_KEY_HEADER, answerOverNodes } from '../src/notifications/answers-over-nodes.js'
import { answerAll, answerDue, type GivenAnswer, isUnfinished } from '../src/notifications/bulk-answers.js'
import { countOverNodes, pageOverNodes } from '../src/notifications/inbox-over-nodes.js'
import { clientOf } from './hops.js'
import { linkNext } from './paging.js'

/** What sessions need people for, over REST. */
export const notificationRoutes: FastifyPluginAsyncTypebox<{ gateway: Gateway }> = async (scope, { gateway }) => {
  const { registry, idempotency, clock } = gateway
  const { logger } = gateway.options
  const { feed, inbox, nodes } = gateway.notifications

  scope.get(
    '/inbox',
    { schema: { querystring: ListInboxQuery, response: { 200: Type.Array(InboxItem) } } },
    async (request, reply) => {
      const { query, principal } = request
      const page = nodes ? await pageOverNodes(inbox, query, principal, nodes.askInbox) : inbox.page(query, principal)
      return linkNext(request, reply, page)
    },
  )

  scope.get(
    '/inbox/count',
    { schema: { querystring: NoQuery, response: { 200: InboxCount } } },
    async ({ principal }) => (nodes ? countOverNodes(inbox, principal, nodes.askInbox) : inbox.count(principal)),
  )

  scope.post(
    '/inbox/answers',
    {
      config: { idempotent: true, isUnfinished },
      schema: { body: UncheckedAnswers, response: { 200: AnswerInboxResponse } },
    },
    async (request) => {
      const { body, principal, headers, hop, takenKey } = request
      const path = `${scope.prefix}/inbox/answers`
      const key = takenKey?.key ?? (hop && headers[ANSWERS_KEY_HEADER]?.toString())
      const once = key === undefined ? undefined : inParts({ key, path }, { store: idempotency, clock, logger })
      const here = (answers: readonly GivenAnswer[]) => answerAll(answers, principal, { registry, logger, once })
      const over = (answers: readonly GivenAnswer[], cluster: Cluster) =>
        answerOverNodes(answers, here, cluster, { path, headers, client: clientOf(request), key })
      // what another node passes on goes no further
      const cluster = hop ? undefined : gateway.cluster
      const results = await answerDue(body.answers, takenKey?.earlier, (answers) =>
        cluster ? over(answers, cluster) : here(answers),
      )
      return { results }
    },
  )

  scope.get(
    '/notifications',
    {
      schema: {
        querystring: ListNotificationsQuery,
        response: { 200: Type.Unsafe<Buffer>(Type.Array(SessionNotification)) },
      },
    },
    async (request, reply) => {
      const page = await feed.page(request.query, request.principal)
      const kept = linkNext(request, reply, page, 'after')
      // their bytes as they were written
      const body = Buffer.from(`[${kept.map(({ json }) => json).join(',')}]`)
      return reply.type('application/json; charset=utf-8').send(body)
    },
  )

  scope.get(
    '/notifications/:id/deliveries',
    {
      config: { owner: 'any' },
      schema: { params: NotificationParams, querystring: NoQuery, response: { 200: Type.Array(WebhookDelivery) } },
    },
    async ({ params, principal }) => {
      const { json } = await feed.find(params.id, principal)
      const { sessionId, seq } = JSON.parse(json) as SessionNotification
      return gateway.notifications.deliveries(sessionId, seq)
    },
  )
}
