import { cutAt } from './cut-at.js'

/** White space, control characters, and those that turn the direction of what is written around them. */
const BREAKS = /[\s\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** Text on one line of at most `max` UTF-16 units, without control characters, cut at a whole character. */
export function oneLine(text: string, max = 140): string {
  // what is cut off anyway is not worth looking at
  const line = text
    .slice(0, max * 8)
    .replace(BREAKS, ' ')
    .trim()
  if (line.length <= max) return line
  return `${cutAt(line, max - 1)}…`
}
