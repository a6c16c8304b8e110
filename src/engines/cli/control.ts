import { GatewayError, toError } from '../../errors.js'
import type { Clock } from '../../lib/clock.js'
import { within } from '../../lib/within.js'
import type { RunnerEvent } from '../runner.js'

/** How long an agent has to follow an interrupt before its process is ended. */
export const INTERRUPT_GRACE_MS = 5_000
/** How long an agent has to answer a command. */
export const ANSWER_MS = 15_000

/**
 * Has the agent do what a caller asked for.
 * @param reasonOf what to tell of its refusal; default: its message
 * @throws GatewayError SG_ERR_ENGINE_REFUSED, or what the command itself refused with
 */
export async function control(command: () => Promise<void>, reasonOf = messageOf): Promise<void> {
  try {
    await command()
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: reasonOf(error), cause: error })
  }
}

const messageOf = (error: unknown): string => toError(error).message

/**
 * Waits for the answer to a command. What an agent does after it was given up on is done all the same: that is the command's to tell.
 * @throws GatewayError SG_ERR_ENGINE_REFUSED when none comes in time
 */
export const answered = (command: Promise<void>, clock: Clock): Promise<void> =>
  within(ANSWER_MS, command, {
    clock,
    onLate: () => {
      throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: 'The agent does not answer.' })
    },
  })

/** What somebody said of an end, so that more may follow. */
export const asSentence = (said: string): string => (/[.!?]$/.test(said) ? said : `${said}.`)

/**
 * The end of an agent, and of its session with it; a person is told what they can do then.
 * @param detail how it ended
 * @param kept its own name of the session, when it has written that down
 */
export const agentDied = (detail: string, kept: string | undefined): RunnerEvent => ({
  type: 'session_error',
  message: kept ? `${asSentence(detail)} A new session with "resume": "${kept}" goes on from there.` : detail,
  code: 'SG_ERR_ENGINE_FAILED',
})
