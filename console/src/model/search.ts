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

/** Where a text is in events: the first place in each, whatever its case. */
export function hitsIn(events: readonly SessionEvent[], wanted: string): Hit[] {
  const needle = wanted.toLowerCase()
  if (!needle) return []
  return events.flatMap((event) => {
    for (const text of textsIn(event)) {
      const at = text.toLowerCase().indexOf(needle)
      if (at < 0) continue
      return [
        {
          seq: event.seq,
          ts: event.ts,
          before: text.slice(Math.max(0, at - AROUND), at),
          match: text.slice(at, at + wanted.length),
          after: text.slice(at + wanted.length, at + wanted.length + AROUND),
        },
      ]
    }
    return []
  })
}
