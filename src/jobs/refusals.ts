import { type ErrorCode, GatewayError } from '../errors.js'
import { isPolicy } from '../sessions/life/refusals.js'

/** What a request says, or what its agent does not have: another attempt would meet it again. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set<ErrorCode>([
  'SG_ERR_VALIDATION',
  'SG_ERR_UNSUPPORTED',
  'SG_ERR_PROFILE_REQUIRED',
  'SG_ERR_PROFILE_INVALID',
])

/** @param code of a refusal, or what an engine gave for one */
export const isFinalRefusal = (code: string | undefined): boolean =>
  code !== undefined && (isPolicy(code) || OF_THE_REQUEST.has(code))

/** What refuses the session of a job, with its fields named as the job has them: `session.cwd`. */
export function ofSession(refusal: unknown): unknown {
  if (!(refusal instanceof GatewayError) || !refusal.errors) return refusal
  const { code, message, cause } = refusal
  const errors = refusal.errors.map((error) => ({ ...error, path: `session.${error.path}` }))
  const namesField = refusal.errors.some(({ path }) => message.startsWith(`${path}: `))
  return new GatewayError(code, { detail: namesField ? `session.${message}` : message, errors, cause })
}
