/** JSON as people read it and write it. Pure. */

/** With indents. What cannot be written, which nothing from the wire is, is nothing. */
export const wholeJson = (value: unknown): string => JSON.stringify(value, null, 2) ?? ''

export type Parsed = { value: Record<string, unknown> } | { problem: 'syntax'; line: number } | { problem: 'no-object' }

/** What somebody typed, which has to be an object. `line`: where it stops to be JSON, from 1. */
export function parsedObject(text: string): Parsed {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { problem: 'syntax', line: lineOf(text, String((error as Error).message)) }
  }
  return isObject(value) ? { value } : { problem: 'no-object' }
}

/** Engines say either the position or the line; where they say nothing, it is cut off at its end. */
function lineOf(text: string, message: string): number {
  const line = /line (\d+)/.exec(message)?.[1]
  if (line !== undefined) return Number(line)
  const position = /position (\d+)/.exec(message)?.[1]
  return text.slice(0, position === undefined ? undefined : Number(position)).split('\n').length
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
