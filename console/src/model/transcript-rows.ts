import type { MessageItem, ToolPart, Transcript, TranscriptItem } from '../../../client/index.js'

/** What a transcript shows, from the top: items, and those of helpers under the call that they work for. */
export interface TranscriptRows {
  rows: TranscriptItem[]
  /** By the id of the call. */
  nested: ReadonlyMap<string, TranscriptItem[]>
}

const parentOf = (item: TranscriptItem): string | undefined =>
  item.kind === 'message' ? item.parentToolUseId : undefined

export function rowsOf({ items }: Transcript): TranscriptRows {
  const calls = new Set<string>()
  for (const item of items)
    if (item.kind === 'message') for (const part of item.parts) if (part.type === 'tool') calls.add(part.id)
  const rows: TranscriptItem[] = []
  const nested = new Map<string, TranscriptItem[]>()
  for (const item of items) {
    const parent = parentOf(item)
    // of a call that is not in the window it stands where it was said
    if (parent === undefined || !calls.has(parent)) rows.push(item)
    else {
      const list = nested.get(parent)
      if (list) list.push(item)
      else nested.set(parent, [item])
    }
  }
  return { rows, nested }
}

/** The tool calls of a message. */
export const toolsOf = (item: MessageItem): ToolPart[] =>
  item.parts.filter((part): part is ToolPart => part.type === 'tool')
