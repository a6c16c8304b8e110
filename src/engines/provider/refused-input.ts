import { cutAt } from '../../lib/cut-at.js'
import type { ModelMessage } from './model-call.js'
import type { ToolResultOutput } from './transcript-messages.js'

/** Of the results of one answer's calls together, in characters; each time they are refused at most half of a result. */
const MOST_KEPT = 8_000
/** What is no longer than that was hardly what was refused. */
const SHORT = 500
const LEFT_OUT = 'left out: the provider refused the call with it'

/** Said of a key, a bill or a model with the status of a message that is refused. */
const OF_NO_MESSAGE =
  /\bapi[ _-]?key\b|\bcredit balance\b|\binsufficient[ _](?:quota|credits?|balance|funds)\b|\bbilling\b|model_not_found|\binvalid[ _]model\b|\bmodel\b.{0,100}\b(?:not exist|not found)\b|not a valid model/i
const TOO_LONG =
  /\bcontext[ _](?:length|window|size|limit)|\btoo (?:long|large)\b|\btoo many tokens\b|\bmax(?:imum)?\b.{0,60}\btokens\b|\bexceeds?\b.{0,60}\btokens\b/i
/** Such words of one value alone: a name, an id, or how much the model may answer. No shorter conversation mends that. */
const OF_ONE_VALUE = /\bstring too long\b|\bmax_(?:\w+_)?tokens['"`]?(?: is too large\b|: \d+ >)/i
export const ALL_TOO_LONG =
  'The conversation as a whole has become too long for the model: begin a new session, or choose a model that reads more.'

/**
 * Makes a transcript one to go on from when a provider has refused to read it: too long, blank, an image that it cannot take. What it
 * has never answered is suspect. A message of the user is taken back; of the results of tools, which tell what was done, the beginning stays.
 * What is refused for something else stays whole, once: whoever mends that need not say it again.
 * @param reason what the provider said
 * @returns what became of it, and what to do, in sentences
 */
export function takeBack(messages: ModelMessage[], reason: string): string[] {
  const isAgain = messages.at(-1)?.role === 'user' && messages.at(-2)?.role === 'user'
  if (!isAgain && OF_NO_MESSAGE.test(reason)) return []
  const size = JSON.stringify(messages).length
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
  const isTooLong = TOO_LONG.test(reason) && !OF_ONE_VALUE.test(reason)
  return [
    ...(done.length > 0 ? [`The session goes on without what was refused: ${done.join(', and ')}.`] : []),
    ...(isTooLong && JSON.stringify(messages).length > size / 2 ? [ALL_TOO_LONG] : []),
  ]
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
  const kept = cutAt(text, Math.max(SHORT, Math.min(share, text.length >> 1)))
  return `${kept}\n[The rest, ${text.length - kept.length} characters, was ${LEFT_OUT}]`
}
