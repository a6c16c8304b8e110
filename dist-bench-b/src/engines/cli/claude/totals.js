const NOTHING = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 };
/**
 * The agent counts tokens and cost over the life of its process, and a resumed session goes on from what it had cost before. What is
 * this session's own is the difference to where the agent stood when it started.
 */
export class Totals {
    #tokens = NOTHING;
    #agentCostUsd = 0;
    #costUsd;
    #numTurns;
    constructor(state = { numTurns: 0, costUsd: 0 }) {
        this.#costUsd = state.costUsd;
        this.#numTurns = state.numTurns;
    }
    get state() {
        return { numTurns: this.#numTurns, costUsd: this.#costUsd };
    }
    get agent() {
        return { tokens: this.#tokens, costUsd: this.#agentCostUsd };
    }
    /** Goes on in the middle of a turn. */
    continueFrom({ tokens, costUsd }) {
        this.#tokens = tokens;
        this.#agentCostUsd = costUsd;
    }
    /** Where the agent stands before its first turn here. */
    startFrom(result) {
        this.#tokens = tokensOf(result) ?? NOTHING;
        this.#agentCostUsd = result.total_cost_usd ?? 0;
    }
    /**
     * @param earlierSteps how often the model was called in the turn before the agent took over
     * @returns what the turn used, and the session's totals after it
     */
    add(result, earlierSteps = 0) {
        const tokens = tokensOf(result);
        const usage = tokens ? difference(tokens, this.#tokens) : messageUsage(result.usage ?? {});
        if (tokens)
            this.#tokens = tokens;
        const cost = result.total_cost_usd ?? this.#agentCostUsd;
        this.#costUsd += Math.max(0, cost - this.#agentCostUsd);
        this.#agentCostUsd = cost;
        this.#numTurns += (result.num_turns ?? 0) + earlierSteps;
        return { usage, numTurns: this.#numTurns, totalCostUsd: this.#costUsd };
    }
}
export const messageUsage = (usage) => ({
    inputTokens: usage.input_tokens ?? 0,
    outputTokens: usage.output_tokens ?? 0,
    cacheCreationTokens: usage.cache_creation_input_tokens ?? 0,
    cacheReadTokens: usage.cache_read_input_tokens ?? 0,
});
/** Over all models, helpers and calls that were cut off included. */
function tokensOf({ modelUsage }) {
    const models = Object.values(modelUsage ?? {});
    if (models.length === 0)
        return undefined;
    const sum = (count) => models.reduce((total, model) => total + (count(model) ?? 0), 0);
    return {
        inputTokens: sum((model) => model.inputTokens),
        outputTokens: sum((model) => model.outputTokens),
        cacheCreationTokens: sum((model) => model.cacheCreationInputTokens),
        cacheReadTokens: sum((model) => model.cacheReadInputTokens),
    };
}
const difference = (now, before) => ({
    inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
    outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
    cacheCreationTokens: Math.max(0, now.cacheCreationTokens - before.cacheCreationTokens),
    cacheReadTokens: Math.max(0, now.cacheReadTokens - before.cacheReadTokens),
});
//# sourceMappingURL=totals.js.map