import type { TokenUsage } from '../../../../schemas/sessions.js'

/** Token counts as agents give them: under these names, or under the older ones with underscores. */
interface Counts {
  inputTokens?: number
  outputTokens?: number
  totalTokens?: number
  thoughtTokens?: number
  cachedReadTokens?: number
  cachedWriteTokens?: number
  input_tokens?: number
  output_tokens?: number
}

/** What a prompt's answer says of the whole turn; undefined when it says nothing. */
export function turnUsage(answer: unknown): TokenUsage | undefined {
  const { usage, _meta } = answer as { usage?: Counts; _meta?: { quota?: { token_count?: Counts } } }
  const counts = usage ?? _meta?.quota?.token_count
  return counts && tokens(counts)
}

/** What an update says of one call of the model, between the pieces of its answer. */
export function callUsage(update: { _meta?: Record<string, unknown> | null }): TokenUsage | undefined {
  const counts = update._meta?.usage as Counts | undefined
  return counts && tokens(counts)
}

function tokens(counts: Counts): TokenUsage {
  const input = counts.inputTokens ?? counts.input_tokens ?? 0
  const output = counts.outputTokens ?? counts.output_tokens ?? 0
  const cacheReadTokens = counts.cachedReadTokens ?? 0
  const cacheCreationTokens = counts.cachedWriteTokens ?? 0
  // Some count what came from the cache among the input, as their total shows; it is not to be counted twice.
  const isIncluded = counts.totalTokens !== undefined && counts.totalTokens <= input + output
  return {
    inputTokens: isIncluded ? Math.max(0, input - cacheReadTokens - cacheCreationTokens) : input,
    outputTokens: output,
    cacheCreationTokens,
    cacheReadTokens,
  }
}
