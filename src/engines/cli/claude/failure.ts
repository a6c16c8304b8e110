import { toError } from '../../../errors.js'
import { asSentence } from '../control.js'

/**
 * What the SDK says of its end, as a sentence; nothing where that is only how the agent's process ended, which the process's last words say
 * once more, with what it told.
 */
export function failureOf(error: unknown): string {
  const { message } = toError(error)
  if (message === '' || /^Claude Code process (exited with code|terminated by signal) /.test(message)) return ''
  return asSentence(message)
}
