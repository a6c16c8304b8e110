import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  CreateSubscriptionRequest,
  DeleteSubscriptionRequest,
  DeleteSubscriptionResponse,
  PushSubscriptionInfo,
  VapidKeyResponse,
} from '../schemas/notifications.js'
import { NoQuery } from '../schemas/sessions.js'
import type { WebPush } from '../src/notifications/channels/push.js'

/** Browsers that want to be told by web push; there are none without such a channel. */
export const pushSubscriptionRoutes: FastifyPluginAsyncTypebox<{ push: WebPush }> = async (scope, { push }) => {
  scope.get(
    '/notifications/vapid-key',
    { schema: { querystring: NoQuery, response: { 200: VapidKeyResponse } } },
    async () => ({ publicKey: push.publicKey }),
  )

  scope.post(
    '/notifications/subscriptions',
    { schema: { body: CreateSubscriptionRequest, response: { 200: PushSubscriptionInfo, 201: PushSubscriptionInfo } } },
    async ({ body, principal, signInId }, reply) => {
      const { subscription, isNew } = await push.subscriptions.subscribe(body, principal, signInId)
      const { id, createdAt, expiresAt } = subscription
      return reply.code(isNew ? 201 : 200).send({ id, createdAt, expiresAt })
    },
  )

  scope.delete(
    '/notifications/subscriptions',
    { schema: { body: DeleteSubscriptionRequest, response: { 200: DeleteSubscriptionResponse } } },
    async ({ body, principal }) => {
      await push.subscriptions.unsubscribe(body.endpoint, principal)
      return { deleted: true as const }
    },
  )
}
