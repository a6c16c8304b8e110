/** What a statement is given: arrays as they travel in binary, everything else as text. */
export type Value = string | number | boolean | null | Buffer

const INT8 = 20
const TEXT = 25
const HEADER_BYTES = 20

/** No text of PostgreSQL has a NUL: what has one is kept as what is no Unicode is, with a replacement character. */
export const storable = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)

/** Neither side has to quote anything of it: half of what a batch of events costs the client otherwise. */
export function textArray(texts: readonly (string | null)[]): Buffer {
  const kept = texts.map((text) => text && storable(text))
  const bytes = kept.map((text) => (text === null ? 0 : Buffer.byteLength(text)))
  const buffer = header(
    TEXT,
    texts.length,
    bytes.reduce((sum, length) => sum + 4 + length, 0),
  )
  let at = HEADER_BYTES
  for (const [index, text] of kept.entries()) {
    at = buffer.writeInt32BE(text === null ? -1 : bytes[index]!, at)
    if (text !== null) at += buffer.write(text, at)
  }
  return buffer
}

export function integerArray(numbers: readonly number[]): Buffer {
  const buffer = header(INT8, numbers.length, numbers.length * 12)
  let at = HEADER_BYTES
  for (const number of numbers) {
    at = buffer.writeInt32BE(8, at)
    at = buffer.writeBigInt64BE(BigInt(number), at)
  }
  return buffer
}

/** One dimension from 1, elements of any kind. */
function header(type: number, length: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bytes)
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(1, 4)
  buffer.writeInt32BE(type, 8)
  buffer.writeInt32BE(length, 12)
  buffer.writeInt32BE(1, 16)
  return buffer
}

/** Whether a text is a JSON object, and one with something in it. */
export const isKept = (column: string, hasFields = true): string =>
  `@is_object_1(${column})${hasFields ? ` AND ${column} !~ '^\\s*{\\s*}\\s*$'` : ''}`
