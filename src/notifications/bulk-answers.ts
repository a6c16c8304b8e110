import type { AnswerInboxResponse, InboxAnswerResult } from '../../schemas/notifications.js'
import { ResolvePermissionRequest } from '../../schemas/permissions.js'
import { ERROR_CODES, GatewayError, statusOf, toError } from '../errors.js'
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
 * @returns what became of each, in their order; never rejects
 */
export async function answerAll(
  answers: readonly GivenAnswer[],
  principal: Principal,
  { registry, logger }: { registry: Pick<SessionRegistry, 'resolvePermission'>; logger: Logger },
): Promise<InboxAnswerResult[]> {
  const one = async ({ sessionId, requestId, ...answer }: GivenAnswer): Promise<InboxAnswerResult> => {
    const whose = { sessionId, requestId }
    try {
      checker.assert(answer)
      await registry.resolvePermission(sessionId, requestId, answer, principal, { channel: 'inbox' })
      return { ...whose, resolved: true }
    } catch (error) {
      const refusal = error instanceof GatewayError ? error : new GatewayError('SG_ERR_INTERNAL', { cause: error })
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

/** Nothing was done, and it may be tried again. */
const TRY_AGAIN: ReadonlySet<string> = new Set(ERROR_CODES.filter((code) => statusOf(code) === 503))

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
  const given = await give(answers.filter((_answer, index) => isDue(results[index]!)))
  return results.map((result) => (isDue(result) ? given.shift()! : result))
}
