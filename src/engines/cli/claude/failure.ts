import { toError } from '../../../errors.js'
import { asSentence } from '../control.js'
import { NO_CLAUDE } from './executable.js'

const ONLY_ITS_END =
  /^(Claude Code process (exited with code|terminated by signal) |Failed to spawn Claude Code process: spawn |Query closed before response received$)/

/** Whether the SDK says no more than that the agent's process has ended. */
export const isItsEnd = (error: unknown): boolean => ONLY_ITS_END.test(toError(error).message)

/** What the SDK makes of an error of the agent that is no text, and all that it keeps of it. */
const NO_TEXT = '[object Object]'

/** The SDK takes for granted what the messages of an agent hold. */
function messageOf(error: unknown): string {
  const { message } = toError(error)
  if (message === NO_TEXT) return ''
  return error instanceof TypeError && !('code' in error) ? `What the agent said cannot be read (${message}).` : message
}

/** What the SDK says against a start. */
export const refusalIn = (error: unknown): string =>
  messageOf(error) || 'The agent refused to start, and gave no reason.'

/** What it says against what the agent was told to do. */
export const denialIn = (error: unknown): string => messageOf(error) || 'The agent refused, and gave no reason.'

/**
 * What the SDK says of its end, as a sentence; nothing where that is only how the agent's process ended, which the process's last words say
 * once more, with what it told.
 */
export function failureOf(error: unknown): string {
  const message = messageOf(error)
  if (message === '' || ONLY_ITS_END.test(message)) return ''
  // it names an option of its own, which nobody has here
  return asSentence(/^Native CLI binary for \S+ not found/.test(message) ? NO_CLAUDE : message)
}
