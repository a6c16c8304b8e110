/** What survives a runner, so that its successor counts on. */
export interface CostState {
  costUsd: number
  /** Where the agent's own count stood; absent in what earlier versions kept. */
  agentCostUsd?: number
}

/** More than a session can cost: sums of so many can be told and stored. */
const MAX_USD = 1e12

/**
 * The cost of a session. Agents tell what all of their own session has cost, which goes on when it is loaded again; what is this
 * session's is the difference to where the agent stood when it took over.
 */
export class SessionCost {
  #costUsd: number
  /** Undefined: the agent has told nothing yet, and may have cost something before. */
  #agentUsd: number | undefined

  constructor({ costUsd, agentCostUsd }: CostState) {
    this.#costUsd = costUsd
    this.#agentUsd = agentCostUsd
  }

  get totalUsd(): number {
    return this.#costUsd
  }

  get state(): CostState {
    return { costUsd: this.#costUsd, ...(this.#agentUsd !== undefined && { agentCostUsd: this.#agentUsd }) }
  }

  /** Where the agent stands before its first turn here. */
  startFrom(agentUsd: number): void {
    if (agentUsd <= MAX_USD) this.#agentUsd = agentUsd
  }

  /** @param isReplay it is told of what was before */
  told(agentUsd: number, isReplay: boolean): void {
    if (!(agentUsd >= 0 && agentUsd <= MAX_USD)) return
    if (isReplay) {
      this.#agentUsd ??= agentUsd
      return
    }
    const before = this.#agentUsd ?? agentUsd
    // One that counts less than before has begun to count anew.
    this.#costUsd += agentUsd >= before ? agentUsd - before : agentUsd
    this.#agentUsd = agentUsd
  }
}
