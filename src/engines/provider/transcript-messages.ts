import type { ModelMessage, ToolResultPart } from 'ai'
import type { MessageBlock } from '../../../schemas/events.js'
import { wellFormed } from '../../lib/well-formed.js'
import { isBlank, toolNameAsShown } from './kept-answer.js'
import type { ToolResult } from './tool.js'

export type ToolResultOutput = ToolResultPart['output']

/** The results of one answer's calls, as the model is shown them. */
export const toolMessage = (
  results: { id: string; name: string; result: ToolResult }[],
  takesImages: boolean,
): ModelMessage => ({
  role: 'tool',
  content: results.map(({ id, name, result }) => ({
    type: 'tool-result',
    toolCallId: id,
    toolName: toolNameAsShown(name),
    output: modelOutput(result, takesImages),
  })),
})

/** Vendors refuse a result without a word: Amazon Bedrock any, Anthropic that of a call that failed. */
const WORDLESS = '(no output)'
const NO_IMAGES = '[An image was left out: this provider takes none in the result of a tool]'

function modelOutput({ content, isError }: ToolResult, takesImages: boolean): ToolResultOutput {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content
  const shown = parts
    .filter((part) => part.type !== 'text' || !isBlank(part.text))
    .map((part) => (part.type === 'text' || takesImages ? part : { type: 'text' as const, text: NO_IMAGES }))
  if (isError || shown.every((part) => part.type === 'text')) {
    const texts = shown.flatMap((part) => (part.type === 'text' ? wellFormed(part.text) : []))
    return { type: isError ? 'error-text' : 'text', value: texts.join('\n') || WORDLESS }
  }
  return {
    type: 'content',
    value: shown.map((part) =>
      part.type === 'text'
        ? { type: 'text', text: wellFormed(part.text) }
        : { type: 'image-data', data: part.data, mediaType: part.mediaType },
    ),
  }
}

export const userMessage = (text: string): ModelMessage => ({ role: 'user', content: wellFormed(text) })

/**
 * What is kept of an answer that broke off: its text. Thinking without its signature would be refused when it is sent back, and so would
 * white space alone.
 */
export function partialMessage(blocks: MessageBlock[]): ModelMessage | undefined {
  const spoken = blocks.flatMap((block) => (block.type === 'text' && 'text' in block ? [String(block.text)] : []))
  const content = wellFormed(spoken.join(''))
  return isBlank(content) ? undefined : { role: 'assistant', content }
}

/** Ids of all tool calls in a transcript. */
export function toolCallIds(messages: ModelMessage[]): Set<string> {
  const ids = new Set<string>()
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const part of content) if (part.type === 'tool-call') ids.add(part.toolCallId)
  }
  return ids
}
