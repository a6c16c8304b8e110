import type { PromptResponse } from '@agentclientprotocol/sdk'
import type { TurnSubtype } from '../../../../schemas/events.js'
import type { TokenUsage } from '../../../../schemas/sessions.js'
import { type AcpConnection, reasonOf } from './connection.js'
import { turnUsage } from './usage.js'

/** How a turn ended. */
interface TurnEnd {
  subtype: TurnSubtype
  isError: boolean
  errors?: string[]
  usage?: TokenUsage
}

const INTERRUPTED: TurnEnd = { subtype: 'interrupted', isError: false }

/**
 * Gives the agent a prompt and waits for the end of its turn.
 * @param refusal what was said last, when that may be a vendor's refusal; asked for once the turn is over
 * @returns undefined when the agent itself is gone
 */
export async function takeTurn(
  connection: AcpConnection,
  { sessionId, text, signal }: { sessionId: string; text: string; signal: AbortSignal },
  refusal: () => string | undefined,
): Promise<TurnEnd | undefined> {
  try {
    const answer = await connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
    return endOf(answer, refusal())
  } catch (error) {
    if (connection.signal.aborted) return undefined
    return signal.aborted
      ? INTERRUPTED
      : { subtype: 'error_during_execution', isError: true, errors: [reasonOf(error)] }
  }
}

/** @param refusal what the agent said, when that may be the vendor's refusal in disguise */
function endOf(answer: PromptResponse, refusal: string | undefined): TurnEnd {
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
