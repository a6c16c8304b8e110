import type { ResolvePermissionRequest } from '../../../schemas/permissions.js'
import { type ErrorCode, GatewayError } from '../../errors.js'
import type { AnswerableSessions } from './answer-links.js'

/** What one node asks another about a request of one of its sessions. */
export type AnswerableQuestion =
  | { ask: 'waiting' | 'profileOf'; sessionId: string; requestId: string }
  | { ask: 'resolve'; sessionId: string; requestId: string; answer: ResolvePermissionRequest }
  | { ask: 'resolution'; sessionId: string; requestId: string; seq: number }

/** `given` is absent where there is nothing. */
export type AnswerableReply = { given?: unknown } | { refused: { code: ErrorCode; detail: string } }

/**
 * Asks the node that has the session; undefined: it is this one.
 * @throws SG_ERR_STORE_UNAVAILABLE while nobody can say · SG_ERR_NODE_UNREACHABLE when nothing was done · SG_ERR_NODE_LOST when nobody knows
 */
export type AskOwner = (question: AnswerableQuestion) => Promise<AnswerableReply | undefined>

/** The sessions of all nodes, for whoever holds a link or is reminded. */
export function answerableOverNodes(here: AnswerableSessions, askOwner: AskOwner): AnswerableSessions {
  const asked = async (question: AnswerableQuestion) => {
    const reply = await askOwner(question)
    if (!reply) return (await given(here, question)) as never
    if ('refused' in reply) throw new GatewayError(reply.refused.code, { detail: reply.refused.detail })
    return reply.given as never
  }
  return {
    waiting: (sessionId, requestId) => asked({ ask: 'waiting', sessionId, requestId }),
    resolve: (sessionId, requestId, answer) => asked({ ask: 'resolve', sessionId, requestId, answer }),
    // a node of before this question says nothing, and so the channel alone counts
    profileOf: (sessionId, requestId) => asked({ ask: 'profileOf', sessionId, requestId }),
    resolution: (sessionId, requestId, seq) => asked({ ask: 'resolution', sessionId, requestId, seq }),
  }
}

/** Answers another node. @throws what is no refusal */
export async function replyTo(here: AnswerableSessions, question: AnswerableQuestion): Promise<AnswerableReply> {
  try {
    return { given: await given(here, question) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { refused: { code: error.code, detail: error.message } }
  }
}

function given(here: AnswerableSessions, question: AnswerableQuestion): Promise<unknown> {
  const { sessionId, requestId } = question
  switch (question.ask) {
    case 'waiting':
      return here.waiting(sessionId, requestId)
    case 'resolve':
      return here.resolve(sessionId, requestId, question.answer)
    case 'profileOf':
      return here.profileOf(sessionId, requestId)
    case 'resolution':
      return here.resolution(sessionId, requestId, question.seq)
  }
}
