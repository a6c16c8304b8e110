import type { TokenUsage } from '../../../schemas/sessions.js'
import { tokenCount } from '../token-usage.js'

type Told = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Told => typeof value === 'object' && value !== null

/**
 * What an answer has said of its usage so far, as its vendor writes it: the SDK tells it at the end of an answer, and nothing of one that
 * has none.
 */
export class ToldUsage {
  #usage: TokenUsage | undefined
  #isOver = false

  /** Anthropic's protocol has an end besides the reason for it. Usage alone is no end: routers make it up for half an answer, too. */
  get isOver(): boolean {
    return this.#isOver
  }

  get usage(): TokenUsage | undefined {
    return this.#usage
  }

  take(raw: unknown): void {
    if (!isObject(raw)) return
    this.#isOver ||= raw.type === 'message_stop'
    if (raw.type === 'message_start' && isObject(raw.message)) this.#anthropic(raw.message.usage)
    else if (raw.type === 'message_delta') this.#anthropic(raw.usage)
    else if (isObject(raw.usage)) this.#openAi(raw.usage)
    else if (isObject(raw.usageMetadata)) this.#google(raw.usageMetadata)
  }

  /** The end of an answer may leave out what its beginning has told. */
  #anthropic(told: unknown): void {
    if (!isObject(told)) return
    const count = (name: string, before = 0) => (name in told ? tokenCount(told[name]) : before)
    this.#usage = {
      inputTokens: count('input_tokens', this.#usage?.inputTokens),
      outputTokens: count('output_tokens', this.#usage?.outputTokens),
      cacheCreationTokens: count('cache_creation_input_tokens', this.#usage?.cacheCreationTokens),
      cacheReadTokens: count('cache_read_input_tokens', this.#usage?.cacheReadTokens),
    }
  }

  #openAi(told: Told): void {
    const cached = isObject(told.prompt_tokens_details) ? tokenCount(told.prompt_tokens_details.cached_tokens) : 0
    this.#whole(tokenCount(told.prompt_tokens), cached, tokenCount(told.completion_tokens))
  }

  #google(told: Told): void {
    const output = tokenCount(told.candidatesTokenCount) + tokenCount(told.thoughtsTokenCount)
    this.#whole(tokenCount(told.promptTokenCount), tokenCount(told.cachedContentTokenCount), output)
  }

  #whole(input: number, cached: number, outputTokens: number): void {
    const inputTokens = Math.max(0, input - cached)
    this.#usage = { inputTokens, outputTokens, cacheCreationTokens: 0, cacheReadTokens: cached }
  }
}
