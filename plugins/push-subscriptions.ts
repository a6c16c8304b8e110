import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  CreateSubscriptionRequest,
  DeleteSubscriptionRequest,
  DeleteSubscriptionResponse,
  PushSubscriptionInfo,
  VapidKeyResponse,
} from '../schemas/notifications.js'
import { NoQuery } from '../schemas/sessions.js'
import type { SignIns } from '../src/console/sign-ins.js'
import type { WebPush } from '../src/notifications/channels/push.js'

interface PushParts {
  push: WebPush
  signIns: SignIns | undefined
}

/** Browsers that want to be told by web push; there are none without such a channel. */
export const pushSubscriptionRoutes: FastifyPluginAsyncTypebox<PushParts> = async (scope, { push, signIns }) => {
  scope.get(
    '/notifications/vapid-key',
    { schema: { querystring: NoQuery, response: { 200: VapidKeyResponse } } },
    async () => ({ publicKey: push.publicKey }),
  )

  scope.post(
    '/notifications/subscriptions',
    { schema: { body: CreateSubscriptionRequest, response: { 200: PushSubscriptionInfo, 201: PushSubscriptionInfo } } },
    async ({ body, principal, signInId: made }, reply) => {
      const signIn = made === undefined ? undefined : { id: made, holds: () => signIns?.holds(made) === true }
      const { subscription, isNew } = await push.subscriptions.subscribe(body, principal, signIn)
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
