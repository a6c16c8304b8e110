import { cutAt } from '../../lib/cut-at.js'
import type { ToolResult } from './tool.js'

const MAX_RESULT_CHARACTERS = 200_000
const LEFT_OUT = /\n\[\d+ more characters were left out\]$/

/** As much of a result as a model is shown; one that was cut already stays as it is, and so do images, whatever stands beside them. */
export function capped(result: ToolResult): ToolResult {
  const { content } = result
  let room = MAX_RESULT_CHARACTERS
  const cut = (text: string): string => {
    const length = text.length - (LEFT_OUT.exec(text.slice(-100))?.[0].length ?? 0)
    if (length <= room) {
      room -= length
      return text
    }
    const kept = cutAt(text, room)
    room = 0
    return `${kept}\n[${text.length - kept.length} more characters were left out]`
  }
  return {
    ...result,
    content:
      typeof content === 'string'
        ? cut(content)
        : content.map((part) => (part.type === 'text' ? { ...part, text: cut(part.text) } : part)),
  }
}
