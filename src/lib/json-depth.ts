import parse from 'secure-json-parse'
import { GatewayError, invalidField } from '../errors.js'

/** How deeply arrays and objects may be nested. Serialising recurses: what is stored some thousand levels deep cannot be answered. */
const MAX_DEPTH = 64

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** `[` and `{`, and `]` and `}`, differ in this bit alone. */
const BRACE_BIT = 0x20
const OPEN = 0x7b
const CLOSE = 0x7d

/**
 * Whether arrays and objects in a JSON text are nested deeper than `limit`, without parsing it. Of a text that is not JSON, only what
 * comes before its first error counts, and a parser gets no further either.
 */
export function exceedsJsonDepth(text: string | Buffer, limit = MAX_DEPTH): boolean {
  if (text.length <= limit) return false
  // UTF-8 has no quote, bracket or backslash inside another character, so one byte may count as one.
  const chars = typeof text === 'string' ? text : text.toString('latin1')
  let depth = 0
  for (let at = 0; at < chars.length; at++) {
    const char = chars.charCodeAt(at)
    if (char === QUOTE) at = endOfString(chars, at + 1)
    else if ((char | BRACE_BIT) === OPEN && ++depth > limit) return true
    else if ((char | BRACE_BIT) === CLOSE) depth--
  }
  return false
}

/** Where the string that begins at `from` is closed. `indexOf` makes a long text in a string cost next to nothing. */
function endOfString(chars: string, from: number): number {
  for (let at = from; ; at++) {
    const quote = chars.indexOf('"', at)
    if (quote < 0) return chars.length
    let backslashes = quote
    while (backslashes > at && chars.charCodeAt(backslashes - 1) === BACKSLASH) backslashes--
    if ((quote - backslashes) % 2 === 0) return quote
    at = quote
  }
}

/** Of a number in it `JSON.parse` may make Infinity, which would be written down and answered as `null`. */
const MAY_OVERFLOW = /\d[eE]\+?\d|(?<!\d)\d{309}/

/** Dotted path of the first number that is beyond what a double can hold. */
function overflowing(value: unknown, at: readonly string[] = []): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : at.join('.')
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const path = overflowing(member, [...at, name])
    if (path !== undefined) return path
  }
  return undefined
}

/**
 * Parses what comes from outside.
 * @param limit how deeply it may be nested
 * @throws GatewayError SG_ERR_TOO_DEEP, SG_ERR_INVALID_JSON when it is malformed or has a key that would poison a prototype, or
 * SG_ERR_VALIDATION naming a number that is too large to be one
 */
export function parseJson(text: string | Buffer, limit = MAX_DEPTH): unknown {
  if (exceedsJsonDepth(text, limit)) {
    throw new GatewayError('SG_ERR_TOO_DEEP', { detail: `The JSON is nested deeper than ${limit} levels.` })
  }
  let value: unknown
  try {
    value = parse(text, { protoAction: 'error', constructorAction: 'error' })
  } catch (cause) {
    const detail = 'The JSON is malformed, or has a key __proto__ or constructor.prototype.'
    throw new GatewayError('SG_ERR_INVALID_JSON', { detail, cause })
  }
  const path = MAY_OVERFLOW.test(text.toString('latin1')) ? overflowing(value) : undefined
  if (path !== undefined) throw invalidField(path, 'Expected a number that is not larger than a number can be.')
  return value
}
