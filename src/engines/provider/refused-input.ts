import type { ModelMessage, ToolResultOutput } from './model-call.js'

/** Of the results of one answer's calls together, in characters; each time they are refused at most half of a result. */
const MOST_KEPT = 8_000
/** What is no longer than that was hardly what was refused. */
const SHORT = 500
const LEFT_OUT = 'left out: the provider refused the call with it'

/**
 * Makes a transcript one to go on from when a provider has refused to read it: too long, blank, an image that it cannot take. What it
 * has never answered is suspect. A message of the user is taken back; of the results of tools, which tell what was done, the beginning stays.
 * @returns what became of it, in a sentence; undefined when nothing did
 */
export function takeBack(messages: ModelMessage[]): string | undefined {
  const before = messages.length
  while (messages.at(-1)?.role === 'user') messages.pop()
  const isTaken = messages.length < before
  const last = messages.at(-1)
  const kept = last?.role === 'tool' ? shortened(last) : last
  const isShorter = kept !== last
  if (kept && isShorter) messages[messages.length - 1] = kept
  const done = [
    ...(isTaken ? ['the message was taken back'] : []),
    ...(isShorter ? ['only the beginning of the last results of tools is kept for the model'] : []),
  ]
  return done.length === 0 ? undefined : `The session goes on without what was refused: ${done.join(', and ')}.`
}

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>

/** The same message when there is nothing to leave out. */
function shortened(message: ToolMessage): ToolMessage {
  const share = Math.floor(MOST_KEPT / message.content.length)
  const content = message.content.map((part) => {
    const output = part.type === 'tool-result' ? shorterOutput(part.output, share) : undefined
    return output ? { ...part, output } : part
  }) as ToolMessage['content']
  return content.some((part, index) => part !== message.content[index]) ? { ...message, content } : message
}

function shorterOutput(output: ToolResultOutput, share: number): ToolResultOutput | undefined {
  if (output.type === 'text' || output.type === 'error-text') {
    const value = shorter(output.value, share)
    return value === output.value ? undefined : { ...output, value }
  }
  if (output.type !== 'content') return undefined
  const texts = output.value.map((part) => (part.type === 'text' ? part.text : `[An image was ${LEFT_OUT}]`))
  const isAllText = output.value.every(({ type }) => type === 'text')
  const value = shorter(texts.join('\n'), share)
  return isAllText && value === texts.join('\n') ? undefined : { type: 'text', value }
}

function shorter(text: string, share: number): string {
  if (text.length <= SHORT) return text
  const kept = text.slice(0, Math.max(SHORT, Math.min(share, text.length >> 1))).replace(/[\uD800-\uDBFF]$/, '')
  return `${kept}\n[The rest, ${text.length - kept.length} characters, was ${LEFT_OUT}]`
}
