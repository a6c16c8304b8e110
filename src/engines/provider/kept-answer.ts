import { createHash } from 'node:crypto'
import type { ModelMessage } from 'ai'
import type { ModelToolCall } from './model-call.js'

/**
 * An answer as the model is shown it in the next call: its calls as they are here, whose ids may be others and whose input is left out where
 * it cannot be run, and without what vendors refuse to read again though their own models write it: blank text beside a call, thinking that
 * nothing follows, names that no tool can have. One such part, and no call of the session would be taken any more.
 * @returns undefined when nothing is left
 */
export function keptAnswer(message: ModelMessage, calls: readonly ModelToolCall[]): ModelMessage | undefined {
  if (message.role !== 'assistant') return message
  if (typeof message.content === 'string') return isBlank(message.content) ? undefined : message
  const made = calls.values()
  const content = message.content
    .map((part) => {
      if (part.type !== 'tool-call' || part.providerExecuted) return part
      const { id, name, input } = made.next().value!
      return { ...part, toolCallId: id, toolName: toolNameAsShown(name), input }
    })
    // what a vendor has a remark to is its own: a signature can hang on a text that is empty
    .filter((part) => part.type !== 'text' || part.providerOptions || !isBlank(part.text))
  while (endsInThought(content.at(-1), calls)) content.pop()
  return content.length > 0 ? { ...message, content } : undefined
}

/** Behind a call only what its vendor sealed: other thinking belongs to the call, wherever it came. */
const endsInThought = (last: AnswerPart | undefined, calls: readonly ModelToolCall[]): boolean =>
  last?.type === 'reasoning' && (calls.length === 0 || last.providerOptions !== undefined)

/**
 * A message of a transcript as another model is shown it: without what the one before it thought, and with ids that every vendor takes,
 * since what it is shown may have been written by another vendor's model behind the same endpoint.
 */
export function forAnotherModel(message: ModelMessage, model: string): ModelMessage {
  const shown = withoutThinking(message, model)
  if (typeof shown.content === 'string') return shown
  const hasFitIds = shown.content.every((part) => !('toolCallId' in part) || FIT.test(part.toolCallId))
  if (hasFitIds) return shown
  const content = shown.content.map((part) =>
    'toolCallId' in part ? { ...part, toolCallId: callIdAsShown(part.toolCallId) } : part,
  )
  return { ...shown, content } as ModelMessage
}

/** The id of a call as a model is shown it, with the call and with its result. */
export const callIdAsShown = (id: string): string =>
  FIT.test(id) ? id : `call_${createHash('sha256').update(id).digest('base64url')}`

/**
 * An answer as another model is shown it. Thinking with a remark of its vendor, as a signature, is for the model alone that thought it, and
 * some refuse that of others; what came after it is then no item that the vendor knows to belong to it. Thinking that is mere text stays:
 * models that think refuse a call of a tool without any.
 */
export function withoutThinking(message: ModelMessage, model: string): ModelMessage {
  if (message.role !== 'assistant' || typeof message.content === 'string') return message
  const content = message.content.filter((part) => part.type !== 'reasoning' || !isSealed(part, model))
  if (content.length === message.content.length) return message
  return { ...message, content: content.map(asNoItem) }
}

/**
 * DeepSeek, which speaks Anthropic's protocol as well, signs with the id of the message, reads what others of its models thought, and
 * refuses a call of a tool without. Anthropic's own models take no signature but theirs.
 */
const isSealed = ({ providerOptions }: Extract<AnswerPart, { type: 'reasoning' }>, model: string): boolean =>
  providerOptions !== undefined && (/claude/i.test(model) || !UUID.test(String(providerOptions.anthropic?.signature)))

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A part of an answer that is no plain text. */
export type AnswerPart = Exclude<Extract<ModelMessage, { role: 'assistant' }>['content'], string>[number]

function asNoItem<Part extends AnswerPart>(part: Part): Part {
  if (!('providerOptions' in part) || !part.providerOptions) return part
  const remarks = Object.entries(part.providerOptions).map(([vendor, { itemId: _itemId, ...rest }]) => [vendor, rest])
  return { ...part, providerOptions: Object.fromEntries(remarks) }
}

/**
 * A transcript as a model is shown it. Mistral's, wherever they run, refuse a message of the user right behind results of tools, which is
 * what a turn leaves that ended between those and an answer: all that is said afterwards would be refused.
 */
export const inOrderOf = (model: string, messages: ModelMessage[]): ModelMessage[] =>
  MISTRAL.test(model)
    ? messages.flatMap((message, index) =>
        message.role === 'user' && messages[index - 1]?.role === 'tool' ? [TURN_ENDED, message] : [message],
      )
    : messages

const MISTRAL = /[sx]tral/i
const TURN_ENDED: ModelMessage = { role: 'assistant', content: '(The turn ended here.)' }

/** The name of a tool as a model is shown it, with a call and with its result. */
export function toolNameAsShown(name: string): string {
  if (FIT.test(name) && !(name in Object.prototype)) return name
  return `unknown_${name.replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, MAX_NAME_LENGTH)
}

/** What every provider takes as a name or an id; all tools that there are have such a name. */
const FIT = /^[A-Za-z0-9_-]{1,64}$/
const MAX_NAME_LENGTH = 64

export const isBlank = (text: string) => text.trim() === ''
