import { isDeepStrictEqual } from 'node:util'
import {
  type AnsweredBy,
  ASK_USER_QUESTION,
  type PermissionRequest,
  type ResolvePermissionRequest,
} from '../../../schemas/permissions.js'
import type { QuestionBehavior } from '../../../schemas/sessions.js'
import type { PermissionAsk, PermissionDecision } from '../../engines/runner.js'
import { invalidField } from '../../errors.js'
import type { KeptKey } from '../../idempotency/store.js'
import { isRecord } from '../../lib/json-value.js'
import type { Patience } from '../../lib/patience.js'
import type { CarriedDecision } from '../kept/journal.js'
import type { Asked } from '../kept/news.js'

/** What comes with an answer. */
export interface AnswerBearing {
  by?: AnsweredBy | undefined
  /** Of the command that it comes by. */
  commandId?: string | undefined
  /** Of the request that brings it, written down with it. */
  key?: KeptKey | undefined
  /** Of whoever brings it. */
  patience?: Patience | undefined
}

/** An answer as a session is asked to take it. */
export const answerAsked = (
  requestId: string,
  answer: ResolvePermissionRequest,
  { by, commandId }: AnswerBearing,
): Asked => ({ type: 'answer', requestId, answer, ...(by && { by }), ...(commandId !== undefined && { commandId }) })

/**
 * Engines read the answers to a question as texts, and take what is none for no answer or for another one.
 * @throws SG_ERR_VALIDATION
 */
export function assertAnswers({ toolName }: { toolName: string }, answer: ResolvePermissionRequest): void {
  if (toolName !== ASK_USER_QUESTION || answer.behavior === 'deny') return
  const { answers = {} } = answer.updatedInput ?? {}
  if (!isRecord(answers)) throw invalidField('updatedInput.answers', 'Expected object.')
  for (const [question, chosen] of Object.entries(answers))
    if (typeof chosen !== 'string')
      throw invalidField(
        `updatedInput.answers.${question.slice(0, 200)}`,
        'Expected string; several labels are joined by ", ".',
      )
}

/**
 * An allow always carries the input to run: the changed one, else the one that was shown. An answer to a question is put beside the
 * question.
 */
export function decisionOf(request: PermissionRequest, answer: PermissionDecision): PermissionDecision {
  if (answer.behavior === 'deny') return answer
  const shown = structuredClone(request.input)
  const { updatedInput = shown } = answer
  const isAnswer = request.toolName === ASK_USER_QUESTION
  return { behavior: 'allow', updatedInput: isAnswer ? { ...shown, ...updatedInput } : updatedInput }
}

/** An answer, for an engine that asks again. */
export function carriedDecision(
  request: PermissionRequest,
  answer: PermissionDecision,
  by: AnsweredBy | undefined,
): CarriedDecision {
  const decision = decisionOf(request, answer)
  const isChanged = changedInput(request, decision) !== undefined
  const { id: requestId, toolUseId } = request
  return { toolUseId, requestId, decision, ...(by && { by }), ...(isChanged && { isChanged }) }
}

/** The input of an allow, when it differs from the one that was shown. */
export function changedInput({ input }: { input: object }, decision: PermissionDecision): object | undefined {
  if (decision.behavior === 'deny' || isDeepStrictEqual(decision.updatedInput, input)) return undefined
  return decision.updatedInput
}

/**
 * What policy answers to a question for the user, without asking: `auto` takes each first option, `deny` sends the agent on alone.
 * `undefined`: ask.
 */
export function policyAnswer(
  ask: PermissionAsk,
  behavior: QuestionBehavior | undefined,
): PermissionDecision | undefined {
  if (ask.toolName !== ASK_USER_QUESTION || behavior === undefined || behavior === 'ask') return undefined
  if (behavior === 'deny') return { behavior: 'deny', message: 'Nobody is there to answer. Decide alone and go on.' }
  return { behavior: 'allow', updatedInput: { ...ask.input, answers: firstOptions(ask.input) } }
}

function firstOptions(input: object): Record<string, string> {
  const { questions } = input as { questions?: unknown }
  if (!Array.isArray(questions)) return {}
  // written by a model: nothing says that it looks as it should
  const asked = questions as ({ question?: unknown; options?: unknown } | null)[]
  return Object.fromEntries(
    asked.flatMap((item) => {
      const label = Array.isArray(item?.options) ? item.options[0]?.label : undefined
      return typeof item?.question === 'string' && typeof label === 'string' ? [[item.question, label]] : []
    }),
  )
}
