import type { StreamingMessage, Transcript, TranscriptItem } from '../../../client/index.js'

/** What a helper said and did for a call, and what it is writing. */
export interface Helper {
  items: TranscriptItem[]
  streaming: StreamingMessage[]
}

/** What a transcript shows, from the top: items, and those of helpers under the call that they work for. */
export interface TranscriptRows {
  rows: TranscriptItem[]
  /** What is being written for no call, or for one that is not among the items. */
  streaming: StreamingMessage[]
  /** By the id of the call. */
  nested: ReadonlyMap<string, Helper>
}

const parentOf = (item: TranscriptItem): string | undefined =>
  item.kind === 'message' ? item.parentToolUseId : undefined

export function rowsOf({ items, streaming }: Pick<Transcript, 'items' | 'streaming'>): TranscriptRows {
  const nested = new Map<string, Helper>()
  const calls = new Set<string>()
  for (const item of items)
    if (item.kind === 'message') for (const part of item.parts) if (part.type === 'tool') calls.add(part.id)
  // of a call that is not in the window it stands where it was said
  const helperOf = (parent: string | undefined): Helper | undefined => {
    if (parent === undefined || !calls.has(parent)) return undefined
    const helper = nested.get(parent) ?? { items: [], streaming: [] }
    nested.set(parent, helper)
    return helper
  }
  const rows: TranscriptItem[] = []
  for (const item of items) (helperOf(parentOf(item))?.items ?? rows).push(item)
  const rest: StreamingMessage[] = []
  for (const message of streaming) (helperOf(message.parentToolUseId)?.streaming ?? rest).push(message)
  return { rows, streaming: rest, nested }
}
