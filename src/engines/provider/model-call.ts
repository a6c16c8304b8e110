import {
  JSONParseError,
  jsonSchema,
  type LanguageModelUsage,
  type ModelMessage,
  streamText,
  type TextStreamPart,
  type ToolSet,
} from 'ai'
import type { MessageBlock, SessionEventOf } from '../../../schemas/events.js'
import type { TokenUsage } from '../../../schemas/sessions.js'
import { toError } from '../../errors.js'
import { isRecord } from '../../lib/json-value.js'
import { newId } from '../../lib/new-id.js'
import { oneLine } from '../../lib/one-line.js'
import { wellFormedJson } from '../../lib/well-formed.js'
import { tokenCount } from '../token-usage.js'
import { inOrderOf, keptAnswer } from './kept-answer.js'
import type { LanguageModel } from './models.js'
import { ToldUsage } from './told-usage.js'
import type { ProviderTool } from './tool.js'
import { BROKEN_OFF, describeUpstreamError, isNewEvent, refusesInput, rootOf } from './upstream-error.js'

// Everything that depends on the version of the AI SDK's loop is in this file. A call never runs a tool: the SDK is shown tools that
// cannot execute, and the turn runs them itself, between two calls.

export type { ModelMessage }

// Sessions tell warnings as events; the SDK would write them to the host's console.
globalThis.AI_SDK_LOG_WARNINGS ??= false

export interface ModelToolCall {
  id: string
  name: string
  input: unknown
  /** Why the call cannot be run: there is no such tool, or its input is no JSON object. */
  problem?: string
}

interface Spent {
  usage: TokenUsage
  /** US dollars as the provider itself told them. */
  reportedCostUsd: number | undefined
}

export interface ModelAnswer {
  /** What the model said, as clients see it: text, thinking and tool calls in order. */
  blocks: MessageBlock[]
  model: string
  stopReason: string
  /** In the vendor's words. */
  vendorReason: string | undefined
  /** Media types of what it gave that a session has no words for, such as images. */
  untold: string[]
  spent: Spent
  /** The answer as the model is shown it in the next call; absent when it said nothing. */
  message: ModelMessage | undefined
  toolCalls: ModelToolCall[]
  /** The answer stopped before its end, so the input of a call may lack its end as well. */
  isCutOff: boolean
}

/** A call that did not come to its end, with the text and the thinking that had arrived. */
export interface BrokenAnswer {
  blocks: MessageBlock[]
  /** Absent when nothing was told of it. */
  spent?: Spent
  /** Absent when the call was aborted. */
  error?: string
  /** The provider did not take what it was sent, and will not take the same again. */
  isInputRefused?: true
}

/**
 * What a session is stands in the gateway alone: OpenAI's models, and Azure's, are otherwise referred to what their vendor keeps of it for a
 * month, or keeps none of.
 */
const VENDOR_KEEPS_NOTHING = { openai: { store: false } }

/** After an error an answer may still tell its usage; milliseconds. */
const REST_AFTER_ERROR_MS = 2_000

export interface ModelRequest {
  model: LanguageModel
  modelId: string
  system: string
  messages: ModelMessage[]
  tools: ToolSet
  signal: AbortSignal
  /** Makes an id a call's own; false when another call of the session has it. */
  claimId: (toolUseId: string) => boolean
  /** Undefined: as many as the provider gives. */
  maxOutputTokens: number | undefined
  onWarning: (warning: unknown) => void
  /** Takes out of what the provider wrote what nobody is to see. */
  redact: (text: string) => string
  /** Present while nothing more is to be read. */
  drained: (signal: AbortSignal) => Promise<void> | undefined
  onDelta: (blockIndex: number, delta: SessionEventOf<'stream_delta'>['delta']) => void
}

/** The tools as the SDK is shown them. */
export const toolSet = (tools: Iterable<ProviderTool>): ToolSet =>
  Object.fromEntries(
    Array.from(tools, ({ name, description, inputSchema }) => [
      name,
      { description, inputSchema: jsonSchema(inputSchema) },
    ]),
  )

/** One call of the model, streamed. Never rejects for what the provider did: a refusal or an outage is a `BrokenAnswer`. */
export async function callModel(request: ModelRequest): Promise<ModelAnswer | BrokenAnswer> {
  const answer = new AnswerBuilder(request)
  const rest = new AbortController()
  let restTimer: NodeJS.Timeout | undefined
  const end = new CallEnd(request)
  try {
    const result = streamText({
      model: request.model,
      system: request.system,
      messages: inOrderOf(request.modelId, request.messages),
      tools: request.tools,
      providerOptions: VENDOR_KEEPS_NOTHING,
      ...(request.maxOutputTokens !== undefined && { maxOutputTokens: request.maxOutputTokens }),
      abortSignal: AbortSignal.any([request.signal, rest.signal]),
      includeRawChunks: true,
      onError: () => {},
    })
    for await (const part of result.fullStream) {
      if (part.type === 'abort') return end.broken(answer.spoken)
      if (part.type === 'raw') {
        end.told.take(part.rawValue)
        answer.refuse(part.rawValue)
      } else if (part.type === 'error') {
        if (isNewEvent(part.error, request.model.provider)) continue
        end.onError(part.error)
        restTimer ??= setTimeout(() => rest.abort(), REST_AFTER_ERROR_MS)
      } else if (part.type === 'start-step') {
        part.warnings.forEach(request.onWarning)
      } else if (part.type === 'finish-step') {
        end.onFinish(part)
      } else if (end.error === undefined) {
        answer.take(part)
      }
      const drained = request.drained(request.signal)
      if (drained) await drained
    }
    const { error, spent, model, finishReason, vendorReason } = end
    if (error !== undefined || !spent) return end.broken(answer.spoken)
    const { messages } = await result.response
    const message = messages.find((candidate) => candidate.role === 'assistant')
    const kept = message && keptAnswer(message, answer.toolCalls)
    return {
      blocks: answer.blocks,
      model,
      stopReason: answer.isRefused ? REFUSAL : (STOP_REASONS[finishReason] ?? finishReason),
      vendorReason,
      untold: answer.untold,
      spent,
      message: kept && wellFormedJson(kept),
      toolCalls: answer.toolCalls,
      isCutOff: finishReason !== 'stop' && finishReason !== 'tool-calls',
    }
  } catch (thrown) {
    end.onError(thrown)
    return end.broken(answer.spoken)
  } finally {
    clearTimeout(restTimer)
  }
}

/** How a call ends, as far as that was told by now. */
class CallEnd {
  readonly told = new ToldUsage()
  error: string | undefined
  spent: Spent | undefined
  finishReason = 'other'
  vendorReason: string | undefined
  model: string
  readonly #request: ModelRequest
  #isInputRefused = false

  constructor(request: ModelRequest) {
    this.#request = request
    this.model = request.modelId
  }

  onError(thrown: unknown): void {
    this.error ??= describeUpstreamError(thrown, this.#request.redact)
    this.#isInputRefused ||= refusesInput(thrown)
  }

  onFinish(part: Extract<TextStreamPart<ToolSet>, { type: 'finish-step' }>): void {
    const { usage, rawFinishReason } = part
    const isMadeUp = usage.inputTokens === undefined && usage.outputTokens === undefined
    const used = (isMadeUp && this.told.usage) || tokenUsage(usage)
    this.spent = { usage: used, reportedCostUsd: reportedCost(usage, part.providerMetadata) }
    this.finishReason = rawFinishReason === CONTEXT_FULL ? CONTEXT_FULL : part.finishReason
    this.vendorReason = rawFinishReason && oneLine(this.#request.redact(rawFinishReason))
    this.model = part.response.modelId || this.model
    if (this.finishReason === 'error' || IS_ERROR.test(rawFinishReason ?? ''))
      this.error ??= endedBadly(this.vendorReason)
    // the SDK makes up the end of an answer that has none; some tell their usage, or a reason that is blank, with every word
    if (this.finishReason === 'other' && !rawFinishReason && !this.told.isOver) this.error ??= BROKEN_OFF
  }

  /** @param blocks what had arrived */
  broken(blocks: MessageBlock[]): BrokenAnswer {
    const { error, told } = this
    const spent = this.spent ?? (told.usage && { usage: told.usage, reportedCostUsd: undefined })
    const isFailure = error !== undefined && !this.#request.signal.aborted
    return {
      blocks,
      ...(spent && { spent }),
      ...(isFailure && { error, ...(this.#isInputRefused && { isInputRefused: true as const }) }),
    }
  }
}

/** Of Anthropic's: told apart from an answer that may take no more tokens, which another setting would mend. */
const CONTEXT_FULL = 'model_context_window_exceeded'

/** Of Google's, where the model made something that is no answer; the SDK knows but one of them for an error. */
const IS_ERROR = /^(?:MALFORMED_[A-Z_]+|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE)$/

const endedBadly = (reason: string | undefined): string =>
  `The model ended its answer with an error${reason ? `: ${reason}` : ''}.`

const REFUSAL = 'refusal'

/** The names that the other engines use as well. */
const STOP_REASONS: Record<string, string> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  'content-filter': REFUSAL,
}

type StreamPart = { type: string } & Record<string, unknown>

/** Gathers the parts of a stream into blocks. A block has its index from its first content, so that empty ones leave no hole. */
class AnswerBuilder {
  readonly blocks: MessageBlock[] = []
  readonly toolCalls: ModelToolCall[] = []
  readonly untold: string[] = []
  isRefused = false
  readonly #request: ModelRequest
  readonly #open = new Map<string, number>()
  readonly #said: string[] = []

  constructor(request: ModelRequest) {
    this.#request = request
  }

  /** The blocks of an answer that broke off: a call that was not finished was never made. */
  get spoken(): MessageBlock[] {
    return this.blocks.filter((block) => block.type !== 'tool_use')
  }

  take(part: StreamPart): void {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        this.#speak(part.type === 'text-delta' ? 'text' : 'thinking', part.id as string, part.text as string)
        break
      case 'tool-input-start':
        this.#call(part.id as string, part.toolName as string)
        break
      case 'tool-input-delta':
        this.#request.onDelta(this.#call(part.id as string, ''), { type: 'tool_input', json: part.delta as string })
        break
      case 'tool-call':
        if (!part.providerExecuted) this.#complete(part)
        break
      case 'file':
        this.untold.push((part.file as { mediaType: string }).mediaType)
        break
    }
  }

  /** In OpenAI's chat protocol a refusal has words of its own, of which the package tells nothing. @param raw a piece of the answer */
  refuse(raw: unknown): void {
    const [choice] = isRecord(raw) && Array.isArray(raw.choices) ? raw.choices : []
    const words = choice?.delta?.refusal
    if (typeof words !== 'string' || words === '') return
    this.isRefused = true
    this.#speak('text', REFUSAL, words)
  }

  #speak(type: 'text' | 'thinking', id: string, words: string): void {
    if (words === '') return
    const key = `${type}:${id}`
    const index = this.#open.get(key) ?? this.blocks.length
    this.#open.set(key, index)
    const said = (this.#said[index] ?? '') + words
    this.#said[index] = said
    this.blocks[index] = type === 'text' ? { type, text: said } : { type, thinking: said }
    this.#request.onDelta(index, { type, text: words })
  }

  #call(givenId: string, name: string): number {
    const known = this.#open.get(`call:${givenId}`)
    if (known !== undefined) return known
    // Some endpoints count their call ids from zero in every answer; approvals hang on an id, so it must be one call's alone.
    const id = givenId !== '' && this.#request.claimId(givenId) ? givenId : `call_${newId()}`
    const index = this.blocks.push({ type: 'tool_use', id, name, input: {} }) - 1
    this.#open.set(`call:${givenId}`, index)
    return index
  }

  #complete(part: StreamPart): void {
    const name = part.toolName as string
    const problem = part.invalid ? invalidity(toError(part.error)) : inputProblem(part.input)
    const input = problem ? {} : part.input
    const index = this.#call(part.toolCallId as string, name)
    this.#open.delete(`call:${part.toolCallId}`)
    const { id } = this.blocks[index] as { id: string }
    this.blocks[index] = { type: 'tool_use', id, name, input }
    this.toolCalls.push({
      id,
      name,
      input,
      ...(problem && { problem: `The call of ${name} is not valid: ${problem}` }),
    })
  }
}

/** What is nested deeper could be told and stored no more: other parts of the gateway stop at 64 levels. */
const MAX_INPUT_DEPTH = 32

function inputProblem(input: unknown): string | undefined {
  if (!isRecord(input)) return 'its input is not an object'
  return isWithin(MAX_INPUT_DEPTH, input) ? undefined : `its input is nested deeper than ${MAX_INPUT_DEPTH} levels`
}

/** The SDK would tell all of the input again. */
const invalidity = (error: Error): string =>
  JSONParseError.isInstance(error.cause) ? `its input is no JSON: ${rootOf(error).message}` : error.message

const isWithin = (levels: number, value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isWithin(levels - 1, member)))

/** The SDK's `inputTokens` holds the cached ones as well; here each token is counted in one place. */
function tokenUsage(usage: LanguageModelUsage): TokenUsage {
  const details = usage.inputTokenDetails
  const cacheReadTokens = tokenCount(details?.cacheReadTokens)
  const cacheCreationTokens = tokenCount(details?.cacheWriteTokens)
  const uncached = details?.noCacheTokens ?? tokenCount(usage.inputTokens) - cacheReadTokens - cacheCreationTokens
  return {
    inputTokens: tokenCount(uncached),
    outputTokens: tokenCount(usage.outputTokens),
    cacheCreationTokens,
    cacheReadTokens,
  }
}

/** Routers that bill by themselves tell the cost: in `usage.cost`, or in the metadata of their provider. */
function reportedCost(usage: LanguageModelUsage, metadata: unknown): number | undefined {
  const gateway = (metadata as { gateway?: { cost?: unknown } } | undefined)?.gateway
  for (const told of [usage.raw?.cost, gateway?.cost]) {
    const cost = typeof told === 'string' ? Number.parseFloat(told) : told
    if (typeof cost === 'number' && cost >= 0 && Number.isFinite(cost)) return cost
  }
  return undefined
}
