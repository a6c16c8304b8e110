import type { TokenUsage } from '../../../../schemas/sessions.js'
import { tokenCount } from '../../token-usage.js'

/** Token counts as agents give them: under these names, or under the older ones with underscores. */
interface Counts {
  inputTokens?: unknown
  outputTokens?: unknown
  thoughtTokens?: unknown
  totalTokens?: unknown
  cachedReadTokens?: unknown
  cachedWriteTokens?: unknown
  input_tokens?: unknown
  output_tokens?: unknown
}

/** What a prompt's answer says of the whole turn; undefined when it says nothing. */
export function turnUsage(answer: unknown): TokenUsage | undefined {
  const { usage, _meta } = (answer ?? {}) as {
    usage?: Counts | null
    _meta?: { quota?: { token_count?: Counts } | null } | null
  }
  const counts = usage ?? _meta?.quota?.token_count
  return counts && tokens(counts)
}

/** What an update says of one call of the model, between the pieces of its answer. */
export function callUsage(update: { _meta?: Record<string, unknown> | null }): TokenUsage | undefined {
  const counts = update._meta?.usage as Counts | undefined
  return counts && tokens(counts)
}

function tokens(counts: Counts): TokenUsage {
  const input = tokenCount(counts.inputTokens ?? counts.input_tokens)
  const output = tokenCount(counts.outputTokens ?? counts.output_tokens)
  const cacheReadTokens = tokenCount(counts.cachedReadTokens)
  const cacheCreationTokens = tokenCount(counts.cachedWriteTokens)
  const total = tokenCount(counts.totalTokens)
  // Some count what came from the cache among the input, as their total shows; it is not to be counted twice.
  const isIncluded = total > 0 && total <= input + output
  // and some count what was thought beside what was said
  const thought = tokenCount(counts.thoughtTokens)
  const isApart = total >= input + output + thought + cacheReadTokens + cacheCreationTokens
  return {
    inputTokens: isIncluded ? Math.max(0, input - cacheReadTokens - cacheCreationTokens) : input,
    outputTokens: isApart ? output + thought : output,
    cacheCreationTokens,
    cacheReadTokens,
  }
}
