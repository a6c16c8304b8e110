import type { SessionEvent } from '../../../client/index.js'

/** What was typed of messages that are whole says nothing more; of one that is not, each block is one event. */
export function compacted(events: readonly SessionEvent[]): SessionEvent[] {
  const whole = new Set<string>()
  for (const event of events) if (event.type === 'assistant_message') whole.add(event.uuid)
  const blocks = new Map<string, number>()
  const kept: SessionEvent[] = []
  for (const event of events) {
    if (event.type !== 'stream_delta') kept.push(event)
    else if (!whole.has(event.uuid)) {
      const block = `${event.uuid} ${event.blockIndex} ${event.delta.type}`
      const at = blocks.get(block)
      if (at === undefined) blocks.set(block, kept.push(event) - 1)
      else kept[at] = { ...event, seq: kept[at]!.seq, delta: joined((kept[at] as Delta).delta, event.delta) }
    }
  }
  return kept
}

type Delta = Extract<SessionEvent, { type: 'stream_delta' }>

const joined = (a: Delta['delta'], b: Delta['delta']): Delta['delta'] =>
  b.type === 'tool_input'
    ? { type: b.type, json: (a as typeof b).json + b.json }
    : { type: b.type, text: (a as typeof b).text + b.text }

const CHARS = new WeakMap<object, number>()

/** How much text an event holds, about. */
export function charsOf(event: SessionEvent): number {
  const known = CHARS.get(event)
  if (known !== undefined) return known
  let chars = 0
  const stack: unknown[] = [event]
  while (stack.length > 0) {
    const value = stack.pop()
    chars += typeof value === 'string' ? value.length : 8
    // an array of millions is no argument list
    if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) stack.push(inner)
  }
  CHARS.set(event, chars)
  return chars
}
