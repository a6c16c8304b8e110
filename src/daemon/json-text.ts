import { memberPath, type TextPosition } from './config-problem.js'

/** JSON that says where everything stands, so that a problem found later can be shown at its line. */
export interface JsonText {
  value: unknown
  /** Start of every member and item, by path (`listen.port`, `profiles[0]`). */
  positions: Map<string, TextPosition>
}

/** The text is not JSON; `message` says what was expected. */
export class JsonTextError extends Error {
  override readonly name = 'JsonTextError'
  readonly position: TextPosition

  constructor(message: string, position: TextPosition) {
    super(message)
    this.position = position
  }
}

const MAX_DEPTH = 64
const SPACE = /[ \t\r\n]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const WORD = /[A-Za-z_]+/y
const WORDS = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

/**
 * Parses JSON (RFC 8259) as `JSON.parse` does, with two differences: it knows where it stands, and it refuses a key that an object has
 * twice, of which `JSON.parse` would silently drop one.
 * @throws JsonTextError
 */
export function parseJsonText(source: string): JsonText {
  const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source
  const positions = new Map<string, TextPosition>()
  let offset = 0

  const value = parseValue('', 0)
  skipSpace()
  if (offset < text.length) throw fail('expected the end of the file')
  return { value, positions }

  function parseValue(path: string, depth: number): unknown {
    skipSpace()
    const next = text[offset]
    if (next === '{') return parseObject(path, depth)
    if (next === '[') return parseArray(path, depth)
    if (next === '"') return parseString()
    const number = match(NUMBER)
    if (number !== undefined) return Number(number)
    const start = offset
    const word = match(WORD)
    if (word !== undefined && WORDS.has(word)) return WORDS.get(word)
    offset = start
    if (next === "'") throw fail('expected a value; JSON strings take double quotes')
    throw fail(word === undefined ? 'expected a value' : `expected a value; "${word}" needs double quotes`)
  }

  function parseObject(path: string, depth: number): unknown {
    const entries = new Map<string, unknown>()
    open(depth)
    if (take('}')) return {}
    do {
      skipSpace()
      if (text[offset] !== '"')
        throw fail(text[offset] === '}' ? 'a comma before } is one too many' : 'expected a key in double quotes')
      const at = offset
      const key = parseString()
      if (entries.has(key)) throw fail(`the key "${key}" is there twice`, at)
      const member = memberPath(path, key)
      positions.set(member, positionAt(at))
      if (!take(':')) throw fail('expected a colon after the key')
      entries.set(key, parseValue(member, depth + 1))
    } while (take(','))
    if (!take('}')) throw fail('expected a comma or }')
    // Unlike assignment, fromEntries makes "__proto__" an ordinary key, which validation then refuses.
    return Object.fromEntries(entries)
  }

  function parseArray(path: string, depth: number): unknown {
    const items: unknown[] = []
    open(depth)
    if (take(']')) return items
    do {
      skipSpace()
      if (text[offset] === ']') throw fail('a comma before ] is one too many')
      const item = memberPath(path, items.length)
      positions.set(item, positionAt(offset))
      items.push(parseValue(item, depth + 1))
    } while (take(','))
    if (!take(']')) throw fail('expected a comma or ]')
    return items
  }

  function parseString(): string {
    const literal = match(STRING)
    if (literal === undefined) throw fail('this string does not end, or holds a character that needs escaping')
    return JSON.parse(literal) as string
  }

  function open(depth: number): void {
    if (depth >= MAX_DEPTH) throw fail(`nested deeper than ${MAX_DEPTH} levels`)
    offset += 1
  }

  function take(character: string): boolean {
    skipSpace()
    if (text[offset] !== character) return false
    offset += 1
    return true
  }

  function skipSpace(): void {
    match(SPACE)
  }

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = offset
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) offset += found.length
    return found
  }

  function positionAt(at: number): TextPosition {
    const before = text.slice(0, at)
    return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') }
  }

  function fail(message: string, at = offset): JsonTextError {
    const rest = text.slice(at, at + 2)
    const hint = rest === '' ? ', but the file ends here' : /^(\/[/*]|#)/.test(rest) ? '; JSON has no comments' : ''
    return new JsonTextError(`${message}${hint}`, positionAt(at))
  }
}
