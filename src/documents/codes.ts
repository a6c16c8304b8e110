import type { ErrorCode } from '../errors.js'

/* What routes can refuse, where several can refuse the same. */

export const BODY: ErrorCode[] = [
  'SG_ERR_VALIDATION',
  'SG_ERR_INVALID_JSON',
  'SG_ERR_TOO_DEEP',
  'SG_ERR_BODY_TOO_LARGE',
  'SG_ERR_UNSUPPORTED_MEDIA_TYPE',
]
export const STORES: ErrorCode[] = ['SG_ERR_STORE_UNAVAILABLE']
/** What is said of something that another node has. */
export const ELSEWHERE: ErrorCode[] = ['SG_ERR_NODE_LOST', 'SG_ERR_NODE_UNREACHABLE']
export const SESSION: ErrorCode[] = ['SG_ERR_SESSION_NOT_FOUND', 'SG_ERR_NOT_FOUND', ...ELSEWHERE]
export const JOB: ErrorCode[] = ['SG_ERR_JOB_NOT_FOUND', 'SG_ERR_NOT_FOUND', ...ELSEWHERE]
export const IDEMPOTENT: ErrorCode[] = ['SG_ERR_IDEMPOTENCY_IN_FLIGHT', 'SG_ERR_IDEMPOTENCY_MISMATCH']
/** What is asked of a session each time that an engine is built for it, also for a command long after it was created. */
export const READMISSION: ErrorCode[] = [
  'SG_ERR_CWD_INVALID',
  'SG_ERR_CWD_FORBIDDEN',
  'SG_ERR_BYPASS_DISABLED',
  'SG_ERR_PERMISSION_MODE',
  'SG_ERR_CAPABILITY_NOT_GRANTED',
  'SG_ERR_MCP_SERVERS_NOT_ALLOWED',
  'SG_ERR_UNSUPPORTED',
]
/** Who may run what, where. */
export const ADMISSION: ErrorCode[] = [
  'SG_ERR_PROFILE_REQUIRED',
  'SG_ERR_PROFILE_UNKNOWN',
  'SG_ERR_PROFILE_FORBIDDEN',
  ...READMISSION,
]
/** What a session says to a command that does not fit its state. */
export const STATE: ErrorCode[] = [
  'SG_ERR_SESSION_ENDED',
  'SG_ERR_SESSION_BUSY',
  'SG_ERR_SESSION_PARKED',
  'SG_ERR_ENGINE_REFUSED',
  'SG_ERR_ENGINE_START',
  'SG_ERR_ENGINE_FAILED',
  'SG_ERR_AGENT_STATE_GONE',
  'SG_ERR_NODE_AWAY',
  'SG_ERR_PROFILE_CHANGED',
]
export const MANAGE: ErrorCode[] = ['SG_ERR_PROFILES_NOT_MANAGEABLE', 'SG_ERR_PROFILE_FORBIDDEN', 'SG_ERR_NOT_FOUND']
/** Of a profile that may not be there, or not be theirs to change. */
export const KNOWN_PROFILE: ErrorCode[] = [
  'SG_ERR_PROFILE_NOT_FOUND',
  'SG_ERR_PROFILE_DECLARED',
  'SG_ERR_PROFILE_CHANGED',
]
export const PROFILE_RULES: ErrorCode[] = [
  'SG_ERR_PROFILE_INVALID',
  'SG_ERR_CONFIG_DIR_FORBIDDEN',
  'SG_ERR_BYPASS_DISABLED',
  'SG_ERR_PERMISSION_MODE',
]

export const UNSERVED: ErrorCode[] = [
  'SG_ERR_BAD_REQUEST',
  'SG_ERR_REQUEST_TIMEOUT',
  'SG_ERR_HEADERS_TOO_LARGE',
  'SG_ERR_INTERNAL',
]
