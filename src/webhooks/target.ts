import { createHash } from 'node:crypto'
import { type FieldError, GatewayError, optionError } from '../errors.js'
import type { EgressGuard } from './egress.js'
import { signingKeys } from './signing.js'

/** Where deliveries go, and how hard they are tried. */
export interface WebhookTarget {
  /** Deliveries to one target stop together, when it answers 410. */
  readonly key: string
  /** The option that names it, when the operator does. */
  readonly name?: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Signs with each; none: unsigned. */
  readonly signingKeys: readonly Buffer[]
  /** Attempts per delivery, at least 1. */
  readonly attempts: number
  /** Before the second attempt; doubled for every further one. */
  readonly retryDelayMs: number
  readonly guard: EgressGuard
  /** The channel that it belongs to, as its attempts show it. */
  readonly channel?: string
  /** Reads what the request of one attempt needs, for the request to be written once it may connect. Absent: the payload as JSON, signed with each key. */
  readonly write?: (delivery: { id: string; payload: object }) => Promise<WriteRequest>
  /** Asked last before each attempt: what it was to be told when it waited it may have no right to by then. Absent: it always has. */
  readonly mayBeTold?: (payload: object) => boolean
  /** Statuses that say that nothing is wanted here any more. Default 410. */
  readonly goneStatuses?: readonly number[]
  /** Told of such an answer, by whoever keeps the target; absent: it is kept as a target that is gone. */
  readonly onGone?: () => void
  /** Connections are shared with targets of the same name. Default: those with the same origin. */
  readonly slot?: string
  /** Deliveries that may wait for it, of all lanes; one more is given up. Default: as many as come. */
  readonly maxWaiting?: number
}

/** @param now of the attempt, epoch milliseconds */
export type WriteRequest = (now: number) => WrittenRequest

/** A request as it is sent; names of headers in lower case. */
interface WrittenRequest {
  headers: Record<string, string>
  body: Buffer
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Visible ASCII, with spaces inside. */
const VALUE = /^[!-~](?:[ -~]*[!-~])?$/
const MAX_HEADERS = 32
const MAX_HEADER_BYTES = 8 * 1024
/** Headers that frame the request, name the receiver, or are ours to set. */
const RESERVED =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*|webhook-.*)$/i

/**
 * What is wrong with a target that a caller or the operator named; empty when nothing is.
 * @param at path of the webhook's fields
 */
export function targetProblems(
  { url, headers = {} }: { url: string; headers?: Record<string, string> | undefined },
  guard: EgressGuard,
  at: string,
): FieldError[] {
  const problems: FieldError[] = []
  try {
    guard.checkUrl(url)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    problems.push({ path: `${at}.url`, message: error.message })
  }
  const entries = Object.entries(headers)
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (entries.length > MAX_HEADERS)
    problems.push({ path: `${at}.headers`, message: `There may be ${MAX_HEADERS} headers.` })
  if (bytes > MAX_HEADER_BYTES)
    problems.push({ path: `${at}.headers`, message: `Names and values may take ${MAX_HEADER_BYTES} bytes.` })
  for (const [name, value] of entries.slice(0, MAX_HEADERS)) {
    const path = `${at}.headers.${name}`
    if (!TOKEN.test(name)) problems.push({ path, message: 'The name is no header name.' })
    else if (RESERVED.test(name)) problems.push({ path, message: 'This header is not yours to set.' })
    else if (value !== '' && !VALUE.test(value)) problems.push({ path, message: 'The value must be visible ASCII.' })
  }
  return problems
}

/** A webhook as the operator configures it. */
export interface OperatorWebhook {
  url: string
  headers?: Record<string, string>
  secret?: string | string[]
}

/**
 * The target that an option names.
 * @param option its path
 * @param place what it is known by over restarts, beside its URL. Default: the path
 * @throws SG_ERR_OPTION when it cannot be one
 */
export function operatorTarget(
  { url, headers, secret }: OperatorWebhook,
  given: { option: string; place?: string; attempts: number; retryDelayMs: number; guard: EgressGuard },
): WebhookTarget {
  const { option, place = option, ...rest } = given
  const [problem] = targetProblems({ url, headers }, given.guard, option)
  if (problem) throw optionError(problem.path, problem.message)
  // another URL is another target, and nothing of it is stored
  const digest = createHash('sha256').update(url).digest('base64url')
  return {
    key: `${place} ${digest}`,
    name: option,
    url,
    headers,
    signingKeys: signingKeys(secret, `${option}.secret`),
    ...rest,
  }
}
