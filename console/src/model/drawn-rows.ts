import type { TranscriptItem } from '../../../client/index.js'

/** The rows that are drawn, by the seqs of the first and the last of them: all between them are drawn, too. */
export interface Drawn {
  from: number
  to: number
}

/** Drawing so much at once is not felt: as many rows of a sentence or two. */
export const SLICE = 12
/** Of text, as much work as a row is by itself. */
const CHARS_OF_ONE = 1_000

/**
 * What is to be drawn next of rows: what was drawn and is still there, and a slice more, below it first. Where nothing was, it begins around
 * `seq`. Pure.
 *
 * @param rows by their seq
 * @param seq what is looked at; default: the end
 */
export function grown(
  rows: readonly TranscriptItem[],
  drawn: Drawn | undefined,
  seq?: number,
): { first: number; end: number; drawn: Drawn | undefined } {
  let first = drawn ? rows.findIndex((row) => row.seq >= drawn.from) : -1
  let end = drawn ? rows.findLastIndex((row) => row.seq <= drawn.to) + 1 : 0
  let left = SLICE
  const goal =
    seq === undefined
      ? undefined
      : Math.max(
          0,
          rows.findLastIndex((row) => row.seq <= seq),
        )
  if (first < 0 || end <= first || (goal !== undefined && (goal < first || goal >= end))) {
    first = end = Math.min(rows.length, (goal ?? rows.length) + 1)
    while (first > 0 && left > SLICE / 2) left -= workOf(rows[--first]!)
  }
  while (left > 0 && end < rows.length) left -= workOf(rows[end++]!)
  while (left > 0 && first > 0) left -= workOf(rows[--first]!)
  return { first, end, drawn: end > first ? { from: rows[first]!.seq, to: rows[end - 1]!.seq } : undefined }
}

function workOf(item: TranscriptItem): number {
  if (item.kind !== 'message') return 1
  let chars = 0
  for (const part of item.parts) {
    if (part.type === 'text') chars += part.text.length
    else if (part.type === 'tool' && typeof part.input === 'object' && part.input !== null)
      for (const value of Object.values(part.input)) if (typeof value === 'string') chars += value.length
  }
  return 1 + chars / CHARS_OF_ONE
}
