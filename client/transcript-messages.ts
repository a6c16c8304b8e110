import type { MessageItem, MessagePart, StreamingMessage, ToolPart, ToolPermission } from './transcript.js'
import type { Message, SessionEvent } from './types.js'

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>
export type Block = { type: string; [field: string]: unknown }

/** Earlier gateways kept whatever an engine said. */
export function blocksOf(message: Message | undefined): Block[] {
  const content: unknown = message?.content
  if (typeof content === 'string') return content ? [{ type: 'text', text: content }] : []
  return Array.isArray(content) ? content.filter((block) => typeof block?.type === 'string') : []
}

export function partOf(block: Block): MessagePart {
  if (block.type === 'text') return { type: 'text', text: String(block.text ?? '') }
  if (block.type === 'thinking') return { type: 'thinking', text: String(block.thinking ?? '') }
  if (block.type !== 'tool_use') return { type: 'other', block }
  return { type: 'tool', id: String(block.id), name: String(block.name), input: block.input, status: 'running' }
}

export function messageOf(
  event: EventOf<'user_message' | 'assistant_message'>,
  parts: readonly MessagePart[],
): MessageItem {
  const { seq, ts, uuid, message, parentToolUseId, replay } = event
  return {
    kind: 'message',
    seq,
    ts,
    role: event.type === 'user_message' ? 'user' : 'assistant',
    uuid,
    parts,
    ...(message.model !== undefined && { model: message.model }),
    ...(parentToolUseId !== null && { parentToolUseId }),
    ...(replay && { isReplay: true }),
    ...('synthetic' in event && event.synthetic && { isSynthetic: true }),
    ...('commandId' in event && event.commandId !== undefined && { commandId: event.commandId }),
  }
}

/** The messages that are being written, with what one of them grew by. */
export function grown(
  streaming: readonly StreamingMessage[],
  { uuid, blockIndex, delta, parentToolUseId }: EventOf<'stream_delta'>,
): readonly StreamingMessage[] {
  if (!delta?.type) return streaming
  const index = streaming.findIndex((message) => message.uuid === uuid)
  const message: StreamingMessage = streaming[index] ?? {
    uuid,
    parts: [],
    ...(parentToolUseId !== null && { parentToolUseId }),
  }
  const place = message.parts.findIndex((part) => part.blockIndex === blockIndex)
  const part = message.parts[place]
  const next =
    delta.type === 'tool_input'
      ? { type: delta.type, blockIndex, json: (part?.type === delta.type ? part.json : '') + delta.json }
      : { type: delta.type, blockIndex, text: (part?.type === delta.type ? part.text : '') + delta.text }
  const parts = place < 0 ? [...message.parts, next] : message.parts.with(place, next)
  const whole = { ...message, parts }
  return index < 0 ? [...streaming, whole] : streaming.with(index, whole)
}

export const withPermission = (tool: ToolPart, permission: ToolPermission): ToolPart => ({
  ...tool,
  permission,
  status: isSettled(tool)
    ? tool.status
    : permission.behavior === undefined
      ? 'awaiting_approval'
      : permission.behavior === 'deny'
        ? 'denied'
        : 'running',
})

export const withResult = (tool: ToolPart, block: Block, endedAt: number): ToolPart => ({
  ...tool,
  status: isDenied(tool) ? 'denied' : block.is_error === true ? 'failed' : 'succeeded',
  result: block.content,
  endedAt,
})

/** Of a call whose turn ended without a result. */
export const abandoned = (tool: ToolPart): ToolPart => ({ ...tool, status: isDenied(tool) ? 'denied' : 'abandoned' })

const isDenied = ({ permission }: ToolPart): boolean => permission?.behavior === 'deny'

const isSettled = ({ status }: ToolPart): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'abandoned'
