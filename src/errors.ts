/**
 * The one catalogue of what can be refused. `code` is API and is never reused for another meaning; the text is not.
 * Each row: the HTTP status, the sentence for a person when the place that raises it has none of its own, and the seconds after which it
 * may be tried again, where those are not `RETRY_AFTER_S`.
 */
const CATALOGUE = {
  // requests
  SG_ERR_VALIDATION: [400, 'The request does not match its schema.'],
  SG_ERR_INVALID_JSON: [400, 'The body is not valid JSON.'],
  SG_ERR_TOO_DEEP: [400, 'The JSON is nested deeper than 64 levels.'],
  SG_ERR_BAD_REQUEST: [400, 'The request could not be read.'],
  SG_ERR_UNAUTHENTICATED: [401, 'Authentication is required.'],
  SG_ERR_FORBIDDEN: [403, 'The service that this gateway is part of refused the request.'],
  SG_ERR_ORIGIN_REFUSED: [403, 'This origin may not connect. Add it to allowedOrigins to let it in.'],
  SG_ERR_HOST_REFUSED: [403, 'This Host header is not served here. Add it to allowedHosts to let it in.'],
  SG_ERR_HOP_REFUSED: [403, 'This is for the nodes of the cluster alone.'],
  SG_ERR_METRICS_FORBIDDEN: [403, "This counts what is everybody's; a caller with allowedProfiles may not read it."],
  SG_ERR_NOT_FOUND: [404, 'There is nothing at this path.'],
  SG_ERR_METHOD_NOT_ALLOWED: [405, 'This path does not take that method.'],
  SG_ERR_REQUEST_TIMEOUT: [408, 'The request was not sent in time.'],
  SG_ERR_BODY_TOO_LARGE: [413, 'The body is larger than maxBodyBytes.'],
  SG_ERR_UNSUPPORTED_MEDIA_TYPE: [415, 'Send the body as application/json.'],
  SG_ERR_WRONG_NODE: [421, 'This was meant for another node.'],
  SG_ERR_UPGRADE_REQUIRED: [426, 'This path is a WebSocket; connect with an upgrade.'],
  SG_ERR_TOO_MANY: [429, 'A limit of this gateway is reached. Try again later.'],
  SG_ERR_HEADERS_TOO_LARGE: [431, 'The head of the request is too large.'],
  SG_ERR_INTERNAL: [500, 'Something went wrong inside the gateway. The log has the details under this instance id.'],
  SG_ERR_AUTHENTICATE_FAILED: [500, 'The authenticate hook failed, so nobody was let in.'],
  SG_ERR_NODE_LOST: [
    502,
    'The node that has this was lost before it answered; whether this was done is not known. Look before you send it again, or send it with an Idempotency-Key.',
  ],
  SG_ERR_NODE_UNREACHABLE: [
    503,
    'The node that has this cannot be reached, so nothing was done. Try again shortly.',
    2,
  ],
  SG_ERR_STORE_UNAVAILABLE: [503, 'The storage did not take it, so nothing was done. Try again shortly.'],
  SG_ERR_TOO_MANY_CONNECTIONS: [503, 'The gateway has as many connections as it can hold. Try again shortly.'],
  SG_ERR_UNAVAILABLE: [503, 'The service that this gateway is part of takes no requests now. Try again shortly.'],
  SG_ERR_SHUTTING_DOWN: [503, 'The gateway is shutting down. Try again shortly.'],
  // sessions
  SG_ERR_SESSION_NOT_FOUND: [404, 'There is no such session.'],
  SG_ERR_SESSION_ENDED: [409, 'The session has ended.'],
  SG_ERR_SESSION_BUSY: [409, 'A turn is in progress, and the message asked not to wait for it.'],
  SG_ERR_SESSION_PARKED: [
    409,
    'The session is parked: it waits for the result of an execution, or for an answer. Deliver that, or interrupt it.',
  ],
  SG_ERR_CWD_INVALID: [400, 'cwd must be the absolute path of an existing directory.'],
  SG_ERR_CWD_FORBIDDEN: [403, 'cwd lies outside the allowed roots.'],
  SG_ERR_FILES_NOT_FOUND: [404, 'This session has no virtual filesystem.'],
  SG_ERR_FILE_NOT_FOUND: [
    404,
    // who was told of one that was delivered just before its process died finds out what became of it
    'There is no such file in this session. What a turn has written is lost with a process that dies before its end.',
  ],
  SG_ERR_BYPASS_DISABLED: [403, 'permissionMode bypassPermissions is disabled on this gateway.'],
  SG_ERR_PERMISSION_MODE: [400, 'This engine does not have that permission mode.'],
  SG_ERR_CAPABILITY_NOT_GRANTED: [400, 'The profile does not grant that capability.'],
  SG_ERR_MCP_SERVERS_NOT_ALLOWED: [400, 'mcpServers is for cli sessions; a provider profile names its MCP servers.'],
  SG_ERR_UNSUPPORTED: [400, 'The engine of this session cannot do that.'],
  SG_ERR_ENGINE_REFUSED: [409, 'The engine refused.'],
  SG_ERR_ENGINE_START: [502, 'The engine could not be started.'],
  SG_ERR_ENGINE_FAILED: [502, 'The engine failed.'],
  SG_ERR_AGENT_STATE_GONE: [
    409,
    'The agent no longer has what was said in this session: its own files of it are gone, and it cannot go on. Create a new session; this log stays readable until the session is deleted.',
  ],
  SG_ERR_NODE_AWAY: [503, 'What the agent of this session goes on from is on a node that is away. Start it again.'],
  SG_ERR_SDK_SESSION_NOT_FOUND: [404, 'The agent keeps no such session there.'],
  SG_ERR_SDK_SESSION_IN_USE: [
    409,
    "A session of this gateway that has not ended goes on from it. Delete or close that one first; its sdkSessionId is the agent's.",
  ],
  SG_ERR_PERMISSION_NOT_FOUND: [404, 'There is no such pending permission request.'],
  SG_ERR_EXECUTION_EXISTS: [409, 'Another session has an execution with this id.'],
  SG_ERR_EXECUTION_NOT_FOUND: [404, 'There is no such execution.'],
  SG_ERR_UNKNOWN_COMMAND: [400, 'There is no command of that type.'],
  // notifications
  SG_ERR_NOTIFICATION_NOT_FOUND: [404, 'There is no such notification, or not any more.'],
  SG_ERR_ANSWER_LINK: [404, 'This link does not lead to anything that could be answered.'],
  SG_ERR_ANSWER_LINK_EXPIRED: [410, 'This link has expired.'],
  SG_ERR_SUBSCRIPTION_NOT_FOUND: [404, 'There is no such subscription of this caller.'],
  SG_ERR_SUBSCRIPTION_EXISTS: [409, 'This endpoint is subscribed with other keys by somebody else.'],
  // jobs
  SG_ERR_JOB_NOT_FOUND: [404, 'There is no such job.'],
  // idempotency
  SG_ERR_IDEMPOTENCY_IN_FLIGHT: [409, 'A request with this Idempotency-Key is still in progress.', 1],
  SG_ERR_IDEMPOTENCY_MISMATCH: [422, 'This Idempotency-Key was used for another request.'],
  // profiles
  SG_ERR_PROFILE_REQUIRED: [400, 'Several profiles are declared; name one in profile.'],
  SG_ERR_PROFILE_UNKNOWN: [400, 'There is no such profile.'],
  SG_ERR_PROFILE_NOT_FOUND: [404, 'There is no such profile.'],
  SG_ERR_PROFILE_FORBIDDEN: [403, 'This caller may not use that profile.'],
  SG_ERR_PROFILES_NOT_MANAGEABLE: [403, 'This caller may not manage profiles.'],
  SG_ERR_PROFILE_DECLARED: [403, 'That profile was declared at startup and cannot be changed here.'],
  SG_ERR_PROFILE_EXISTS: [409, 'That profile name is taken.'],
  SG_ERR_PROFILE_CHANGED: [
    409,
    'The profile was deleted, or made to run as someone else, and no other one takes its place.',
  ],
  SG_ERR_PROFILE_INVALID: [400, 'The profile is not valid.'],
  SG_ERR_CONFIG_DIR_FORBIDDEN: [403, 'configDir lies outside the allowed roots.'],
  // inside a session's events, never an HTTP answer
  SG_ERR_API_KEY_REQUIRED: [403, 'The session runs on oauth credentials and this gateway requires an API key.'],
  SG_ERR_EGRESS_BLOCKED: [403, 'That address may not be reached from here.'],
  // construction and start
  SG_ERR_OPTION: [500, 'An option is not valid.'],
} as const satisfies Record<string, CatalogueRow>

type CatalogueRow = readonly [status: number, detail: string, retryAfterS?: number]

/** By the statuses that say to come back. */
export const RETRY_AFTER_S: Record<number, number> = { 429: 5, 503: 5 }

/** What is said instead to whoever only reads: there is nothing that could have been done. */
const TO_READERS: Partial<Record<keyof typeof CATALOGUE, string>> = {
  SG_ERR_NODE_UNREACHABLE: 'The node that has this cannot be reached. Try again shortly.',
  SG_ERR_STORE_UNAVAILABLE: 'The storage does not answer as it should, so this cannot be read. Try again shortly.',
}

export type ErrorCode = keyof typeof CATALOGUE
export const ERROR_CODES = Object.keys(CATALOGUE) as ErrorCode[]

export const statusOf = (code: ErrorCode): number => CATALOGUE[code][0]
/** What is said where nothing else is. */
export const detailOf = (code: ErrorCode): string => CATALOGUE[code][1]

export interface FieldError {
  path: string
  message: string
}

export interface GatewayErrorOptions {
  detail?: string
  /** The fields that were wrong; given on validation failures. */
  errors?: FieldError[]
  /** Seconds after which it may be tried again; default: what the catalogue says. */
  retryAfterS?: number
  /** Methods that the path takes, for 405. */
  allow?: string
  cause?: unknown
}

/** A refusal from the catalogue; `message` is the `detail` a caller reads. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly statusCode: number
  readonly errors: FieldError[] | undefined
  readonly retryAfterS: number | undefined
  readonly allow: string | undefined

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    const [status, detail, retryAfterS = RETRY_AFTER_S[status]]: CatalogueRow = CATALOGUE[code]
    super(options.detail ?? detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.statusCode = status
    this.errors = options.errors
    this.retryAfterS = options.retryAfterS ?? retryAfterS
    this.allow = options.allow
  }
}

/** A refusal as it is; what else went wrong is nothing for callers' eyes, and the cause of one. */
export const asRefusal = (error: unknown): GatewayError =>
  isOf(GatewayError, error) ? error : new GatewayError('SG_ERR_INTERNAL', { cause: error })

/** Whether something was refused, and with that code. */
export const hasCode = (error: unknown, code: ErrorCode): error is GatewayError =>
  isOf(GatewayError, error) && error.code === code

/** A refusal in words that fit a request which changes nothing. */
export function toReader(error: GatewayError): GatewayError {
  const { code, message, cause, retryAfterS } = error
  const detail = TO_READERS[code]
  if (detail === undefined || message !== CATALOGUE[code][1]) return error
  return new GatewayError(code, { detail, cause, ...(retryAfterS !== undefined && { retryAfterS }) })
}

/** A 400 about one field, named in `errors` and in the sentence. */
export const invalidField = (path: string, message: string, code: ErrorCode = 'SG_ERR_VALIDATION'): GatewayError =>
  new GatewayError(code, { detail: `${path}: ${message}`, errors: [{ path, message }] })

/** A refusal about the profile that a request names, or does not. */
export const aboutProfile = (code: ErrorCode, message: string): GatewayError =>
  new GatewayError(code, { errors: [{ path: 'profile', message }] })

export const unknownProfile = (): GatewayError => aboutProfile('SG_ERR_PROFILE_UNKNOWN', 'There is no such profile.')

/** A refusal to be constructed or to start, naming the option. */
export const optionError = (option: string, problem: string, cause?: unknown): GatewayError =>
  new GatewayError('SG_ERR_OPTION', {
    detail: `${option}: ${problem}`,
    errors: [{ path: option, message: problem }],
    ...(cause !== undefined && { cause }),
  })

/** A session's engine cannot start. */
export const startError = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('SG_ERR_ENGINE_START', { detail, cause })

const MAX_NAMES = 5

/** Makes an Error of whatever was thrown. */
export const toError = (thrown: unknown): Error => (isOf(Error, thrown) ? thrown : new Error(wordsOf(thrown)))

/** Of some that a host throws not even that can be asked: a proxy that is revoked, say. */
export function isOf<T>(kind: abstract new (...given: never[]) => T, thrown: unknown): thrown is T {
  try {
    return thrown instanceof kind
  } catch {
    return false
  }
}

/** What a host throws may be anything. Of an object without words its members are named alone: their values may be secrets. */
function wordsOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  try {
    const { message } = Object(thrown) as { message?: unknown }
    if (typeof message === 'string' && message !== '') return message
    const names = Object.keys(Object(thrown)).slice(0, MAX_NAMES)
    const what = names.length > 0 ? `an object with ${names.join(', ')}` : typeof thrown
    return `What was thrown is no Error and says nothing of why: ${what}.`
  } catch {
    return 'What was thrown is no Error, and cannot be looked at.'
  }
}
