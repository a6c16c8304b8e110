import { randomUUID } from 'node:crypto'

/** The id of the call that a helper of the agent works for; null: the agent itself. */
export type Speaker = string | null

export type TextBlock = { type: 'text'; text: string } | { type: 'thinking'; thinking: string }

export interface Piece {
  type: TextBlock['type']
  text: string
  /** Of the message that the piece is part of, where the agent tells. */
  messageId: string | undefined
}

/** A message is an event, which is in memory whole, several times over: what an agent says without an end is told in parts. */
const MAX_CHARACTERS = 8 * 1024 ** 2

interface Building {
  uuid: string
  messageId: string | undefined
  /** Of all its blocks. */
  characters: number
  blocks: TextBlock[]
}

/** The messages in progress, one per speaker. Text comes in pieces without an end; a message is complete when something else begins. */
export class MessagesInProgress {
  readonly #building = new Map<Speaker, Building>()
  readonly #onComplete: (speaker: Speaker, blocks: TextBlock[], uuid: string) => void

  constructor(onComplete: (speaker: Speaker, blocks: TextBlock[], uuid: string) => void) {
    this.#onComplete = onComplete
  }

  /** @returns where in which message the piece stands */
  add(speaker: Speaker, { type, text, messageId }: Piece): { uuid: string; blockIndex: number } {
    const before = this.#building.get(speaker)
    const isFull = before !== undefined && before.characters + text.length > MAX_CHARACTERS
    if (before && (isFull || isOther(before, type, messageId))) this.end(speaker)
    const building = this.#building.get(speaker) ?? { uuid: randomUUID(), messageId, characters: 0, blocks: [] }
    this.#building.set(speaker, building)
    building.characters += text.length
    building.messageId = messageId ?? building.messageId
    const { blocks } = building
    const last = blocks.at(-1)
    if (type === 'thinking' && last?.type === 'thinking') last.thinking += text
    else if (type === 'text' && last?.type === 'text') last.text += text
    else blocks.push(type === 'thinking' ? { type, thinking: text } : { type, text })
    return { uuid: building.uuid, blockIndex: blocks.length - 1 }
  }

  /** Completes what a speaker says. */
  end(speaker: Speaker): void {
    const building = this.#building.get(speaker)
    this.#building.delete(speaker)
    if (building) this.#onComplete(speaker, building.blocks, building.uuid)
  }

  endAll(): void {
    for (const speaker of [...this.#building.keys()]) this.end(speaker)
  }
}

/** A note of the agent's own, which is no message of the model's, has no id; thoughts may have none either. */
function isOther({ messageId: before, blocks }: Building, type: TextBlock['type'], messageId: string | undefined) {
  if (messageId === before) return false
  return before !== undefined ? messageId !== undefined : type === 'text' && blocks.at(-1)?.type === 'text'
}
