import { GatewayError } from '../errors.js'
import type { AnswerableSessions } from '../notifications/answers/answer-links.js'
import {
  type AnswerableReply,
  type AskOwner,
  answerableOverNodes,
} from '../notifications/answers/sessions-over-nodes.js'
import type { AskNodes, InboxAnswer } from '../notifications/inbox-over-nodes.js'
import type { ClusterStorage } from '../storage/cluster.js'
import { wasUnheard } from './cluster.js'
import { Exchange, type ExchangeParts } from './exchange.js'
import { keepInStep, type SharedHere } from './in-step.js'
import type { OwnNode } from './own-node.js'

/** This node's notifications, inbox and answers as a part of those of all nodes. */
export interface OverNodes {
  exchange: Exchange
  /** Of this process, among all. */
  node: () => number
  askInbox: AskNodes
  /** The requests of this node's sessions, as other nodes ask about them. */
  here: AnswerableSessions
  /** Of every node's. */
  sessions: AnswerableSessions
  /** As `keepInStep`. */
  keepInStep(what: SharedHere): () => void
}

/** @param here the requests of this node's sessions */
export function overNodes(
  cluster: OwnNode,
  storage: ClusterStorage,
  { here, ...parts }: Omit<ExchangeParts, 'peers' | 'n'> & { here: AnswerableSessions },
): OverNodes {
  const node = () => cluster.self.n
  const exchange = new Exchange({ ...parts, peers: cluster, n: node })
  const askOwner: AskOwner = async (question) => {
    const place = await cluster.where({ session: question.sessionId })
    if (place === 'here') return undefined
    return exchange.askOne<AnswerableReply>(place, '/answers', question).catch((cause) => {
      // it may be somebody else's by now
      cluster.forget({ session: question.sessionId })
      const isUndone = question.ask !== 'resolve' || wasUnheard(cause)
      throw isUndone
        ? new GatewayError('SG_ERR_NODE_UNREACHABLE', { cause })
        : new GatewayError('SG_ERR_NODE_LOST', { cause })
    })
  }
  const sessions = answerableOverNodes(here, async (question) => {
    const reply = await askOwner(question)
    const isMissed = reply && 'refused' in reply && reply.refused.code === 'SG_ERR_SESSION_NOT_FOUND'
    if (!isMissed) return reply
    // where it is may be remembered from before it went elsewhere
    cluster.forget({ session: question.sessionId })
    return askOwner(question)
  })
  return {
    ...{ exchange, node, here, sessions },
    askInbox: (question) => exchange.askAll<InboxAnswer>('/inbox', question),
    keepInStep: (what) => keepInStep({ ...parts, ...what, exchange, peers: cluster, storage }),
  }
}
