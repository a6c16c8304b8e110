import type { ErrorCode } from '../errors.js'

/**
 * Refusals of a session that another attempt would meet again: they follow from the request, the profile and the gateway's policy. What
 * follows from the moment is worth another attempt: engines that do not start (5xx), a gateway that is full (429), a directory that is
 * not there, as on a mount that is gone.
 */
const FINAL: ReadonlySet<string> = new Set<ErrorCode>([
  'SG_ERR_VALIDATION',
  'SG_ERR_CWD_FORBIDDEN',
  'SG_ERR_BYPASS_DISABLED',
  'SG_ERR_PERMISSION_MODE',
  'SG_ERR_CAPABILITY_NOT_GRANTED',
  'SG_ERR_MCP_SERVERS_NOT_ALLOWED',
  'SG_ERR_UNSUPPORTED',
  'SG_ERR_PROFILE_REQUIRED',
  'SG_ERR_PROFILE_UNKNOWN',
  'SG_ERR_PROFILE_FORBIDDEN',
  'SG_ERR_PROFILE_CHANGED',
  'SG_ERR_PROFILE_INVALID',
  'SG_ERR_CONFIG_DIR_FORBIDDEN',
  'SG_ERR_API_KEY_REQUIRED',
])

/** @param code of a refusal, or what an engine gave for one */
export const isFinalRefusal = (code: string | undefined): boolean => code !== undefined && FINAL.has(code)
