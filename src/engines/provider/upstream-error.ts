import { STATUS_CODES } from 'node:http'
import {
  APICallError,
  InvalidResponseDataError,
  JSONParseError,
  NoOutputGeneratedError,
  RetryError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from 'ai'
import { toError } from '../../errors.js'
import { isRecord } from '../../lib/json-value.js'
import { oneLine } from '../../lib/one-line.js'
import { htmlToText } from './html-text.js'

type Redact = (text: string) => string

export const BROKEN_OFF = 'The answer of the model broke off.'

const MAX_ERROR_LENGTH = 1000
/** Of a body, for its first words to be found. */
const MAX_BODY_LENGTH = 65_536

/** What the provider said, with its status code; of several attempts the last. */
export function describeUpstreamError(thrown: unknown, redact: Redact): string {
  const attempts = RetryError.isInstance(thrown) ? thrown.errors.length : 1
  const last = RetryError.isInstance(thrown) ? thrown.lastError : thrown
  const told = (last as { message?: unknown } | null)?.message
  // an error within an answer is an object as the provider wrote it
  const error = toError(typeof told === 'string' && !(last instanceof Error) ? told : last)
  const status = APICallError.isInstance(error) && !UNREADABLE.test(error.message) ? error.statusCode : undefined
  const misfit = misfitOf(error, redact)
  const isCutOff = misfit === undefined && isUnread(error, status)
  const said = misfit ?? (isCutOff ? redact(rootOf(error).message) : wordsOf(error, redact)).slice(0, MAX_ERROR_LENGTH)
  const what = isCutOff ? 'The answer of the model broke off: ' : status ? `HTTP ${status}: ` : ''
  const remarks = [...(attempts > 1 ? [`after ${attempts} attempts`] : []), ...waitOf(error)]
  return `${what}${said}${remarks.length > 0 ? ` (${remarks.join('; ')})` : ''}`
}

/** Of an answer that is not written as its vendor would, the SDK tells no more than the name of its status. */
function wordsOf(error: Error, redact: Redact): string {
  if (!APICallError.isInstance(error) || (error.message && error.message !== STATUS_CODES[error.statusCode ?? 0]))
    return redact(error.message)
  const body = (error.responseBody ?? '').slice(0, MAX_BODY_LENGTH)
  // before it is cut: half a key is no key to look for
  const words = oneLine(redact(/^\s*</.test(body) ? htmlToText(body, new URL('about:blank')) : body))
  return [error.message, words].filter((part) => part).join(': ')
}

/** When the provider wants to be asked again, in its own words. */
function waitOf(error: Error): string[] {
  const told = (APICallError.isInstance(error) && error.responseHeaders?.['retry-after']) || ''
  if (/^[1-9]\d{0,9}$/.test(told)) return [`to be tried again in ${told} s`]
  return Number.isNaN(Date.parse(told)) || /^\d*$/.test(told) ? [] : [`to be tried again after ${oneLine(told)}`]
}

/** How the package of Anthropic tells of it where it is the first of an answer, as an error 500 that nobody sent. */
const UNREADABLE = /^(JSON parsing failed: Text|Type validation failed: Value): (.*)\.\nError message: /s

const NO_JSON = 'The provider sent what is no JSON'
const STRANGE = 'The provider sent what its protocol does not have'

/** Of what a provider sent that is not of its protocol the SDK tells everything, and each of its own checks; here it is told by its beginning. */
function misfitOf(error: Error, redact: Redact): string | undefined {
  if (JSONParseError.isInstance(error)) return `${NO_JSON}: ${oneLine(redact(error.text))}`
  if (TypeValidationError.isInstance(error)) return strange(error.value, redact)
  if (InvalidResponseDataError.isInstance(error))
    return error.data === undefined ? BROKEN_OFF : strange(error.data, redact)
  if (NoOutputGeneratedError.isInstance(error) && !(error.cause instanceof Error)) return BROKEN_OFF
  const [, check, sent] = UNREADABLE.exec(error.message) ?? []
  if (sent !== undefined) return `${check?.startsWith('JSON') ? NO_JSON : STRANGE}: ${oneLine(redact(sent))}`
  return error.cause instanceof Error ? misfitOf(error.cause, redact) : undefined
}

const strange = (value: unknown, redact: Redact): string =>
  `${STRANGE}: ${oneLine(redact(JSON.stringify(value) ?? 'nothing'))}`

/** Of an answer that went well as far as it came the SDK, or the platform's fetch, tells no more than that its connection ended. */
const isUnread = ({ message, cause }: Error, status: number | undefined): boolean =>
  cause instanceof Error && (status === undefined ? message === 'terminated' : status >= 200 && status < 300)

export const rootOf = (error: Error): Error => (error.cause instanceof Error ? rootOf(error.cause) : error)

/** Of the request itself: invalid, too large, not to be processed. What a package cannot send, as an image of a strange type, never gets there. */
const INPUT_REFUSALS: readonly (number | undefined)[] = [400, 413, 422]

export const refusesInput = (thrown: unknown): boolean =>
  UnsupportedFunctionalityError.isInstance(thrown) ||
  (APICallError.isInstance(thrown) && INPUT_REFUSALS.includes(thrown.statusCode))

/** Of Anthropic's protocol, as its package knows it. */
const EVENT = /^(?:(?:message|content_block)_(?:start|delta|stop)|ping|error)$/

/** An event of a type that came into Anthropic's protocol later, which whoever does not know it is to pass over; the package tells an error. */
export const isNewEvent = (thrown: unknown, provider: string): boolean =>
  provider.startsWith('anthropic') &&
  TypeValidationError.isInstance(thrown) &&
  isRecord(thrown.value) &&
  typeof thrown.value.type === 'string' &&
  !EVENT.test(thrown.value.type)
