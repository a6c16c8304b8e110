import { type ItemList, ItemListEditor } from './item-list.js'
import type { ExecutionItem, MessageItem, MessagePart, ToolPart, TranscriptItem } from './transcript.js'

/**
 * Where the tool calls and executions of a list are. Shared by all versions of it: an entry is a hint that is checked when it is used, so
 * versions that went different ways do no harm to each other.
 */
type Places = Map<string, number>
const PLACES = new WeakMap<object, Places>()

/** Changes to the items of a transcript, of which tool calls and executions are found by their id. */
export class TranscriptItemsEditor {
  readonly #items: ItemListEditor<TranscriptItem>
  readonly #places: Places

  constructor(items: ItemList<TranscriptItem>) {
    this.#items = new ItemListEditor(items)
    this.#places = PLACES.get(items) ?? placesIn(items)
  }

  push(item: TranscriptItem): void {
    for (const id of idsOf(item)) this.#places.set(id, this.#items.length)
    this.#items.push(item)
  }

  /** @returns whether there is such a call */
  changeTool(id: string, change: (tool: ToolPart) => ToolPart): boolean {
    const isIt = (part: MessagePart) => part.type === 'tool' && part.id === id
    const index = this.#find(id, (item) => item.kind === 'message' && item.parts.some(isIt))
    if (index === undefined) return false
    const item = this.#items.at(index) as MessageItem
    const parts = item.parts.map((part) => (part.type === 'tool' && part.id === id ? change(part) : part))
    this.#items.set(index, { ...item, parts })
    return true
  }

  settleExecution(id: string, outcome: Partial<ExecutionItem>): void {
    const index = this.#find(id, (item) => item.kind === 'execution' && item.executionId === id)
    if (index !== undefined) this.#items.set(index, { ...(this.#items.at(index) as ExecutionItem), ...outcome })
  }

  /** Of a session that has ended: what it handed out has no result any more. */
  abandonExecutions(): void {
    for (let index = 0; index < this.#items.length; index++) {
      const item = this.#items.at(index)!
      if (item.kind === 'execution' && item.status === 'running')
        this.#items.set(index, { ...item, status: 'abandoned' })
    }
  }

  /** The list with the changes; the original when there were none. */
  done(): ItemList<TranscriptItem> {
    const items = this.#items.done()
    // an empty one is that of every session
    if (items.length > 0) PLACES.set(items, this.#places)
    return items
  }

  #find(id: string, isIt: (item: TranscriptItem) => boolean): number | undefined {
    const hint = this.#places.get(id)
    if (hint === undefined) return undefined
    const hinted = this.#items.at(hint)
    if (hinted && isIt(hinted)) return hint
    // another version of this list has it elsewhere
    for (let index = this.#items.length - 1; index >= 0; index--) {
      if (!isIt(this.#items.at(index)!)) continue
      this.#places.set(id, index)
      return index
    }
    return undefined
  }
}

function idsOf(item: TranscriptItem): string[] {
  if (item.kind === 'execution') return [item.executionId]
  return item.kind === 'message' ? item.parts.flatMap((part) => (part.type === 'tool' ? [part.id] : [])) : []
}

/** Of a list that came from elsewhere: a copy, or one that was stored. */
function placesIn(items: ItemList<TranscriptItem>): Places {
  const places: Places = new Map()
  let index = 0
  for (const item of items) {
    for (const id of idsOf(item)) places.set(id, index)
    index++
  }
  return places
}
