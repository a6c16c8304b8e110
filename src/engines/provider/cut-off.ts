import type { Message, MessageBlock } from '../../../schemas/events.js'
import { isRecord } from '../../lib/json-value.js'
import { wellFormedJson } from '../../lib/well-formed.js'
import type { CutOffTurn } from '../runner.js'
import { capped } from './capped-result.js'
import { type AnswerPart, callIdAsShown, isBlank, keptAnswer, withoutThinking } from './kept-answer.js'
import type { ModelMessage, ModelToolCall } from './model-call.js'
import type { ModelSource } from './models.js'
import { MAY_HAVE_RUN } from './state.js'
import { failure, type ToolContentPart, type ToolResult } from './tool.js'
import { partialMessage, toolMessage, userMessage } from './transcript-messages.js'

/** Said behind the last result: only tools write files. */
const FILES_LOST =
  '(This turn was cut off: the process that ran it ended. The files of the session are as they were before the turn, some that it delivered aside; what else it wrote to them is lost.)'

const NOT_RUN = failure('The session stopped before this was allowed. It did not run.')

/** A transcript does not begin with the model. */
const NO_PROMPT = '(What was said here is not known any more.)'

/** A signature as those have it who read what others thought; models that take none but their own are shown no thinking with it. */
const SIGNED = { anthropic: { signature: '00000000-0000-4000-8000-000000000000' } }

/**
 * Turns that ended with their process, as the model is shown them: from what was told of them, since their transcript is gone. They are left
 * as an interrupt leaves one, which every vendor takes, and out of which can be taken what one refuses.
 */
export const shownOf = (
  turns: readonly CutOffTurn[],
  model: string,
  source: Pick<ModelSource, 'takesImages' | 'sealsThinking'>,
): ModelMessage[] => turns.flatMap((turn) => turnAsShown(turn, model, source))

function turnAsShown(
  { prompt = '', messages, denied = [] }: CutOffTurn,
  model: string,
  { takesImages, sealsThinking }: Pick<ModelSource, 'takesImages' | 'sealsThinking'>,
): ModelMessage[] {
  if (isBlank(prompt) && messages.length === 0) return []
  const answers = messages.flatMap(({ role, content }) => (role === 'assistant' ? [blocksOf(content)] : []))
  const results = new Map(messages.flatMap(resultsIn))
  for (const blocks of answers) endOpen(blocks.flatMap(callIn), results, denied)
  const last = answers.flatMap((blocks) => blocks.flatMap(callIn)).at(-1)
  if (last) results.set(last.id, withWords(results.get(last.id)!, FILES_LOST))
  const shown = [userMessage(isBlank(prompt) ? NO_PROMPT : prompt)]
  for (const blocks of answers) {
    const calls = blocks.flatMap(callIn)
    const answer = calls.length > 0 ? callingMessage(blocks, calls, sealsThinking) : partialMessage(blocks)
    if (answer) shown.push(withoutThinking(answer, model))
    const made = calls.map(({ id, name }) => ({ name, id: callIdAsShown(id), result: results.get(id)! }))
    if (made.length > 0) shown.push(toolMessage(made, takesImages))
  }
  return shown
}

/** Gives the calls of an answer that have no result one: they begin in order, and none while a person is asked about another. */
function endOpen(calls: readonly ModelToolCall[], results: Map<string, ToolResult>, denied: readonly string[]): void {
  let hasBegun = true
  for (const { id } of calls.filter((call) => !results.has(call.id))) {
    hasBegun &&= !denied.includes(id)
    results.set(id, hasBegun ? MAY_HAVE_RUN : NOT_RUN)
  }
}

const blocksOf = (content: Message['content']): MessageBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

const withWords = ({ content, ...rest }: ToolResult, words: string): ToolResult => ({
  ...rest,
  content: typeof content === 'string' ? `${content}\n\n${words}` : [...content, { type: 'text', text: words }],
})

/** An answer with calls. What was thought before them stays where it may: some models refuse a call without. */
function callingMessage(blocks: MessageBlock[], calls: ModelToolCall[], sealsThinking: boolean): ModelMessage {
  const content = blocks.flatMap((block): AnswerPart[] => {
    if (block.type === 'text' && 'text' in block) return [{ type: 'text', text: String(block.text) }]
    if (block.type === 'thinking' && 'thinking' in block && !sealsThinking)
      return [{ type: 'reasoning', text: String(block.thinking), providerOptions: SIGNED }]
    return callIn(block).map(({ id, name, input }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input }))
  })
  const shown = calls.map((call) => ({ ...call, id: callIdAsShown(call.id) }))
  return wellFormedJson(keptAnswer({ role: 'assistant', content }, shown)!)
}

function callIn(block: MessageBlock): ModelToolCall[] {
  if (block.type !== 'tool_use' || !('input' in block)) return []
  const { id, name, input } = block
  return [{ id: String(id), name: String(name), input: isRecord(input) ? input : {} }]
}

function resultsIn({ role, content }: Message): [string, ToolResult][] {
  if (role !== 'user' || typeof content === 'string') return []
  return content.flatMap((block): [string, ToolResult][] => {
    if (block.type !== 'tool_result' || !('tool_use_id' in block)) return []
    const { tool_use_id: id, content: given, is_error: isError } = block
    // one that came, and that no engine lived to tell, is whole
    const result = capped({ content: Array.isArray(given) ? given.map(partOf) : textOf(given) })
    return [[String(id), isError === true ? { ...result, isError } : result]]
  })
}

/** As the engine tells a result: text, or an image. */
function partOf(block: unknown): ToolContentPart {
  const { type, text, source } = (block ?? {}) as { type?: unknown; text?: unknown; source?: unknown }
  if (type === 'text' && typeof text === 'string') return { type, text }
  const { media_type: mediaType, data } = (source ?? {}) as { media_type?: unknown; data?: unknown }
  if (type === 'image' && typeof mediaType === 'string' && typeof data === 'string') return { type, data, mediaType }
  return { type: 'text', text: textOf(block) }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
