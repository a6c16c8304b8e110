import type { SessionEvent } from '../../../client/index.js'
import { imageOf } from './tool-summary.js'

export interface Hit {
  seq: number
  ts: number
  /** The text around what was found. */
  before: string
  match: string
  after: string
}

const AROUND = 60

/** The texts of an event that somebody may have read: of what stands around them, as ids and the names of types, nothing is shown. */
function textsIn(event: SessionEvent): Iterable<string> {
  switch (event.type) {
    case 'user_message':
    case 'assistant_message':
      return textsOf(event.message?.content)
    case 'permission_requested': {
      const { title, description, decisionReason, input } = event.request
      return stringsIn([title, description, decisionReason, input])
    }
    case 'permission_resolved':
      return stringsIn([event.message, event.by?.principal, event.updatedInput])
    case 'execution_dispatched':
      return [event.toolName]
    case 'execution_result':
      return stringsIn(event.output?.value)
    case 'execution_failed':
      return stringsIn(event.error)
    case 'file_delivered':
      return stringsIn([event.path, event.description])
    case 'plan_updated':
      return stringsIn(event.entries?.map(({ content }) => content))
    case 'status_changed':
      return stringsIn(event.detail)
    case 'turn_completed':
      return stringsIn(event.errors)
    case 'session_error':
      return stringsIn(event.message)
    default:
      return []
  }
}

/** What a message, or the result of a tool, says. */
function* textsOf(content: unknown): Generator<string> {
  if (!Array.isArray(content)) yield* stringsIn(content)
  else for (const block of content) yield* textsOfBlock(block)
}

function textsOfBlock(block: Record<string, unknown> | null): Iterable<string> {
  switch (block?.type) {
    case 'text':
      return stringsIn(block.text)
    case 'thinking':
      return stringsIn(block.thinking)
    case 'tool_use':
      return stringsIn([block.name, block.input])
    case 'tool_result':
      return textsOf(block.content)
    case 'content':
      return textsOf([block.content])
    default:
      // the letters of an image are not read
      return imageOf(block) ? [] : stringsIn(block)
  }
}

function* stringsIn(value: unknown): Generator<string> {
  const stack = [value]
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
