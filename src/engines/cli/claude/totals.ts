import type { TokenUsage } from '../../../../schemas/sessions.js'
import { NO_USAGE, tokenCount, usageSince } from '../../token-usage.js'
import type { SdkResult, SdkUsage } from './sdk.js'

/** What survives a runner, so that its successor counts on. */
export interface TotalsState {
  numTurns: number
  costUsd: number
}

/** Where the agent stood before the turn in progress: its successor's count includes what the turn has used since. */
export interface AgentTotals {
  tokens: TokenUsage
  costUsd: number
}

/**
 * The agent counts tokens and cost over the life of its process, and a resumed session goes on from what it had cost before. What is
 * this session's own is the difference to where the agent stood when it started.
 */
export class Totals {
  #tokens = NO_USAGE
  #agentCostUsd = 0
  #costUsd: number
  #numTurns: number

  constructor(state: TotalsState = { numTurns: 0, costUsd: 0 }) {
    this.#costUsd = state.costUsd
    this.#numTurns = state.numTurns
  }

  get state(): TotalsState {
    return { numTurns: this.#numTurns, costUsd: this.#costUsd }
  }

  /** Of the session. */
  get costUsd(): number {
    return this.#costUsd
  }

  get agent(): AgentTotals {
    return { tokens: this.#tokens, costUsd: this.#agentCostUsd }
  }

  /** Goes on in the middle of a turn. */
  continueFrom({ tokens, costUsd }: AgentTotals): void {
    this.#tokens = tokens
    this.#agentCostUsd = costUsd
  }

  /** Where the agent stands before its first turn here. */
  startFrom(result: SdkResult): void {
    this.#tokens = tokensOf(result) ?? NO_USAGE
    this.#agentCostUsd = result.total_cost_usd ?? 0
  }

  /**
   * @param earlierSteps how often the model was called in the turn before the agent took over
   * @returns what the turn used, and the session's totals after it
   */
  add(result: SdkResult, earlierSteps = 0): { usage: TokenUsage; numTurns: number; totalCostUsd: number } {
    const tokens = tokensOf(result)
    const usage = tokens ? usageSince(tokens, this.#tokens) : messageUsage(result.usage ?? {})
    // a count of nothing: it begins anew, as it does with a conversation that was cleared
    if (result.modelUsage) this.#tokens = tokens ?? NO_USAGE
    const cost = result.total_cost_usd ?? this.#agentCostUsd
    this.#costUsd += Math.max(0, cost - this.#agentCostUsd)
    this.#agentCostUsd = cost
    this.#numTurns += (result.num_turns ?? 0) + earlierSteps
    return { usage, numTurns: this.#numTurns, totalCostUsd: this.#costUsd }
  }
}

export const messageUsage = (usage: SdkUsage): TokenUsage => ({
  inputTokens: tokenCount(usage.input_tokens),
  outputTokens: tokenCount(usage.output_tokens),
  cacheCreationTokens: tokenCount(usage.cache_creation_input_tokens),
  cacheReadTokens: tokenCount(usage.cache_read_input_tokens),
})

/** Over all models, helpers and calls that were cut off included. */
function tokensOf({ modelUsage }: SdkResult): TokenUsage | undefined {
  const models = Object.values(modelUsage ?? {})
  if (models.length === 0) return undefined
  const sum = (count: (model: (typeof models)[number]) => number | undefined) =>
    models.reduce((total, model) => total + tokenCount(count(model)), 0)
  return {
    inputTokens: sum((model) => model.inputTokens),
    outputTokens: sum((model) => model.outputTokens),
    cacheCreationTokens: sum((model) => model.cacheCreationInputTokens),
    cacheReadTokens: sum((model) => model.cacheReadInputTokens),
  }
}
