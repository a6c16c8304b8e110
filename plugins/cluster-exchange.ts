import type { FastifyPluginAsync } from 'fastify'
import { type ChangesTold, EXCHANGE_PATH } from '../src/cluster/exchange.js'
import type { OverNodes } from '../src/cluster/over-nodes.js'
import { type AnswerableQuestion, replyTo } from '../src/notifications/answers/sessions-over-nodes.js'
import type { Inbox } from '../src/notifications/inbox.js'
import { answerNode, type InboxQuestion } from '../src/notifications/inbox-over-nodes.js'

/** What other nodes tell and ask in their own name; what they say was written by this program. */
export const clusterExchange: FastifyPluginAsync<{ nodes: OverNodes; inbox: Inbox }> = async (
  scope,
  { nodes: { exchange, here }, inbox },
) => {
  const config = { forNodes: true, owner: 'any' } as const
  scope.post(`${EXCHANGE_PATH}/changes`, { config }, async ({ body }) => {
    await exchange.told(body as ChangesTold)
    return {}
  })
  scope.post(`${EXCHANGE_PATH}/inbox`, { config }, async ({ body }) => answerNode(inbox, body as InboxQuestion))
  scope.post(`${EXCHANGE_PATH}/answers`, { config }, async ({ body }) => replyTo(here, body as AnswerableQuestion))
}
