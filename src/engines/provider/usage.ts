import type { TokenUsage } from '../../../schemas/sessions.js'

/** US dollars per million tokens. */
export interface ModelPrice {
  input: number
  output: number
  /** Default: `input`. */
  cacheRead?: number | undefined
  /** Default: `input`. */
  cacheCreation?: number | undefined
}

/** @returns US dollars; 0 for a model without a price */
export function costOf(usage: TokenUsage, prices: Readonly<Record<string, ModelPrice>>, model: string): number {
  // a caller may name any model, also one that every object has a member of
  const price = Object.hasOwn(prices, model) ? prices[model] : undefined
  if (!price) return 0
  const perMillion =
    usage.inputTokens * price.input +
    usage.outputTokens * price.output +
    usage.cacheReadTokens * (price.cacheRead ?? price.input) +
    usage.cacheCreationTokens * (price.cacheCreation ?? price.input)
  return perMillion / 1e6
}
