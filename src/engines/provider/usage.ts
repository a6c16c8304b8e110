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
export function costOf(usage: TokenUsage, price: ModelPrice | undefined): number {
  if (!price) return 0
  const perMillion =
    usage.inputTokens * price.input +
    usage.outputTokens * price.output +
    usage.cacheReadTokens * (price.cacheRead ?? price.input) +
    usage.cacheCreationTokens * (price.cacheCreation ?? price.input)
  return perMillion / 1e6
}
