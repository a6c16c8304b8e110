import { isDeepStrictEqual } from 'node:util'
import type { AnswerInboxResponse, InboxAnswerResult } from '../../schemas/notifications.js'
import { ResolvePermissionRequest } from '../../schemas/permissions.js'
import { asRefusal, ERROR_CODES, type ErrorCode, GatewayError, statusOf, toError } from '../errors.js'
import type { DoPart } from '../idempotency/parts.js'
import type { Logger } from '../lib/logger.js'
import { type Checker, compileSchema } from '../lib/validation.js'
import type { Principal } from '../principal.js'
import type { SessionRegistry } from '../sessions/registry.js'

/** One answer as it came: only whose it is is known to be well-formed. */
export interface GivenAnswer {
  sessionId: string
  requestId: string
  [member: string]: unknown
}

const checker: Checker<ResolvePermissionRequest> = compileSchema(ResolvePermissionRequest)

/**
 * Gives each answer as the route of its request would: the answers to one session one after the other, those to others meanwhile.
 * @param to.once where a repeat is to find each as it was
 * @returns what became of each, in their order; never rejects
 */
export async function answerAll(
  answers: readonly GivenAnswer[],
  principal: Principal,
  to: {
    registry: Pick<SessionRegistry, 'resolvePermission'>
    logger: Logger
    once?: DoPart | undefined
  },
): Promise<InboxAnswerResult[]> {
  const { registry, logger, once = (_part, work) => work().then(() => {}) } = to
  const one = async (given: GivenAnswer): Promise<InboxAnswerResult> => {
    const { sessionId, requestId, ...answer } = given
    const whose = { sessionId, requestId }
    try {
      checker.assert(answer)
      await once(given, (takenKey) =>
        registry.resolvePermission(sessionId, requestId, answer, principal, { takenKey, channel: 'inbox' }),
      )
      return { ...whose, resolved: true }
    } catch (error) {
      const refusal = asRefusal(error)
      if (refusal.statusCode >= 500) logger.error({ err: toError(error), ...whose }, 'an answer could not be given')
      return { ...whose, resolved: false, code: refusal.code, detail: refusal.message }
    }
  }
  const turns = new Map<string, Promise<unknown>>()
  return Promise.all(
    answers.map((answer) => {
      const result = (turns.get(answer.sessionId) ?? Promise.resolve()).then(() => one(answer))
      turns.set(answer.sessionId, result)
      return result
    }),
  )
}

/** Nothing was done, or the next try tells what was. */
const TRY_AGAIN: ReadonlySet<string> = new Set<ErrorCode>([
  ...ERROR_CODES.filter((code) => statusOf(code) === 503),
  ...(['SG_ERR_NODE_LOST', 'SG_ERR_IDEMPOTENCY_IN_FLIGHT'] as const),
])

const isDue = (result: InboxAnswerResult): boolean => !result.resolved && TRY_AGAIN.has(result.code)

const resultsOf = (answer: string): InboxAnswerResult[] => (JSON.parse(answer) as AnswerInboxResponse).results

/** Whether an answer to all says of one that it is to be tried again. */
export const isUnfinished = (answer: string): boolean => resultsOf(answer).some(isDue)

/**
 * Gives those answers that nothing was done about, where an earlier request with the same ones was answered.
 * @param earlier what it was answered with
 */
export async function answerDue<T>(
  answers: readonly T[],
  earlier: string | undefined,
  give: (answers: readonly T[]) => Promise<InboxAnswerResult[]>,
): Promise<InboxAnswerResult[]> {
  if (earlier === undefined) return give(answers)
  const results = resultsOf(earlier)
  // the same as one that was given then comes too late, as it does in one request
  const isLate = (answer: T) =>
    results.some(({ resolved }, index) => resolved && isDeepStrictEqual(answers[index], answer))
  const becomes = results.map((result, index) =>
    !isDue(result) ? result : isLate(answers[index]!) ? tooLate(result) : undefined,
  )
  const given = await give(answers.filter((_answer, index) => becomes[index] === undefined))
  return becomes.map((result) => result ?? given.shift()!)
}

function tooLate({ sessionId, requestId }: InboxAnswerResult): InboxAnswerResult {
  const { code, message: detail } = new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
  return { sessionId, requestId, resolved: false, code, detail }
}
