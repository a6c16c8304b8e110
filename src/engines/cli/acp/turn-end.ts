import type { PromptResponse } from '@agentclientprotocol/sdk'
import type { TurnSubtype } from '../../../../schemas/events.js'
import type { TokenUsage } from '../../../../schemas/sessions.js'
import { turnUsage } from './usage.js'

/** How a turn ended. */
export interface TurnEnd {
  subtype: TurnSubtype
  isError: boolean
  errors?: string[]
  usage?: TokenUsage
}

export const INTERRUPTED: TurnEnd = { subtype: 'interrupted', isError: false }

/** @param refusal what the agent said, when that may be the vendor's refusal in disguise */
export function endOf(answer: PromptResponse, refusal: string | undefined): TurnEnd {
  const usage = turnUsage(answer)
  const ended = { ...(usage && { usage }) }
  const subtype = SUBTYPES[answer.stopReason] ?? 'error_during_execution'
  if (subtype === 'success' && refusal !== undefined && !(usage && usage.inputTokens + usage.outputTokens > 0))
    return { subtype: 'error_during_execution', isError: true, errors: [refusal], ...ended }
  const isError = subtype !== 'success' && subtype !== 'interrupted'
  return { subtype, isError, ...ended, ...(isError && { errors: [`The turn ended with ${answer.stopReason}.`] }) }
}

const SUBTYPES: Readonly<Record<string, TurnSubtype>> = {
  end_turn: 'success',
  cancelled: 'interrupted',
  max_turn_requests: 'error_max_turns',
}
