import { type ErrorCode, GatewayError, isOf } from '../../errors.js'

/**
 * Refusals of policy: who may run what, where and how was decided, and trying again does not change it. Everything else that keeps a
 * session from its engine may be over soon: a directory that is not mounted yet, an engine that does not start, a gateway that is full.
 */
const POLICY: ReadonlySet<string> = new Set<ErrorCode>([
  'SG_ERR_CWD_FORBIDDEN',
  'SG_ERR_BYPASS_DISABLED',
  'SG_ERR_PERMISSION_MODE',
  'SG_ERR_CAPABILITY_NOT_GRANTED',
  'SG_ERR_MCP_SERVERS_NOT_ALLOWED',
  'SG_ERR_PROFILE_UNKNOWN',
  'SG_ERR_PROFILE_FORBIDDEN',
  'SG_ERR_PROFILE_CHANGED',
  'SG_ERR_CONFIG_DIR_FORBIDDEN',
  'SG_ERR_API_KEY_REQUIRED',
])

/** @param code of a refusal, or what an engine gave for one */
export const isPolicy = (code: string | undefined): boolean => code !== undefined && POLICY.has(code)

/** After these no engine can ever go on with a session, whoever asks for one. */
const NOBODYS: ReadonlySet<string> = new Set<ErrorCode>(['SG_ERR_PROFILE_CHANGED', 'SG_ERR_AGENT_STATE_GONE'])

/**
 * Whether a session that is refused an engine with this code never gets one again. One that is idle can wait for policy to change: whoever
 * asks is told.
 */
export const isFinal = (code: string, session: 'parked' | 'idle'): boolean =>
  NOBODYS.has(code) || (session === 'parked' && isPolicy(code))

const COMES_AGAIN: ReadonlySet<string> = new Set<ErrorCode>(['SG_ERR_STORE_UNAVAILABLE', 'SG_ERR_SHUTTING_DOWN'])

/** Whether a job whose session is refused with this code comes again, as if it had not been begun: its engine was given nothing. */
export const comesAgain = (code: string): boolean => COMES_AGAIN.has(code)

/** @param node on which alone the engine of a session can start */
export const nodeAway = (node: string): GatewayError =>
  new GatewayError('SG_ERR_NODE_AWAY', {
    detail: `What the agent of this session goes on from is on the node ${node}, which is away. Start that node again, or wait for it; until then the session can be read and deleted.`,
  })

/** Why there is no engine, for callers; what a host's code threw is not for their eyes. */
export const reasonOf = (error: unknown): string =>
  isOf(GatewayError, error) ? error.message : 'the engine did not start.'
