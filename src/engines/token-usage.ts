import type { SessionEventOf } from '../../schemas/events.js'
import type { TokenUsage } from '../../schemas/sessions.js'

type ContextUsage = SessionEventOf<'context_usage'>['usage']

export const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }

/** More than any turn can use: sums of so many stay whole numbers, which can be told and stored. */
const MAX_TOKENS = 1e12

/** What a model or an agent says it has used, where that can be a count; else nothing. */
export function tokenCount(told: unknown): number {
  const count = typeof told === 'number' ? Math.round(told) : 0
  return count > 0 && count <= MAX_TOKENS ? count : 0
}

/** How full a context is, where both counts can be counts; else undefined. */
export function contextUsage(used: unknown, room: unknown): ContextUsage | undefined {
  const [totalTokens, maxTokens] = [tokenCount(used), tokenCount(room)]
  if (maxTokens === 0 || (totalTokens === 0 && used !== 0)) return undefined
  return { totalTokens, maxTokens, percentage: Math.min(100, Math.round((totalTokens / maxTokens) * 100)) }
}

/** Each count, made of those of two. */
const eachOf = (a: TokenUsage, b: TokenUsage, count: (a: number, b: number) => number): TokenUsage => ({
  inputTokens: count(a.inputTokens, b.inputTokens),
  outputTokens: count(a.outputTokens, b.outputTokens),
  cacheCreationTokens: count(a.cacheCreationTokens, b.cacheCreationTokens),
  cacheReadTokens: count(a.cacheReadTokens, b.cacheReadTokens),
})

export const addUsage = (a: TokenUsage, b: TokenUsage): TokenUsage => eachOf(a, b, (one, other) => one + other)

/** What was used since; never less than nothing. */
export const usageSince = (now: TokenUsage, before: TokenUsage): TokenUsage =>
  eachOf(now, before, (count, was) => Math.max(0, count - was))
