import type { SessionEvent } from '../../../client/index.js'

export interface Hit {
  seq: number
  ts: number
  /** The text around what was found. */
  before: string
  match: string
  after: string
}

const AROUND = 60

/** The strings in an event that somebody may have read. */
function* textsIn(event: SessionEvent): Generator<string> {
  if (event.type === 'stream_delta' || event.type === 'capabilities' || event.type === 'system_init') return
  const stack: unknown[] = [event]
  while (stack.length > 0) {
    const value = stack.pop()
    if (typeof value === 'string') yield value
    else if (typeof value === 'object' && value !== null)
      for (const inner of Object.values(value).reverse()) stack.push(inner)
  }
}

/** Where a text is in events: the first place in each, whatever its case. What stands around it is cut, and says so. */
export function hitsIn(events: readonly SessionEvent[], wanted: string): Hit[] {
  if (!wanted) return []
  // the lower case of a text can be longer than it
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu')
  return events.flatMap((event) => {
    for (const text of textsIn(event)) {
      const found = pattern.exec(text)
      if (!found) continue
      const [match] = found
      const [from, end] = [found.index, found.index + match.length]
      return [
        {
          seq: event.seq,
          ts: event.ts,
          before: `${from > AROUND ? '…' : ''}${text.slice(Math.max(0, from - AROUND), from)}`,
          match,
          after: `${text.slice(end, end + AROUND)}${text.length > end + AROUND ? '…' : ''}`,
        },
      ]
    }
    return []
  })
}
