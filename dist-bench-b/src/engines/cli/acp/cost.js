/**
 * The cost of a session. Agents tell what all of their own session has cost, which goes on when it is loaded again; what is this
 * session's is the difference to where the agent stood when it took over.
 */
export class SessionCost {
    #costUsd;
    /** Undefined: the agent has told nothing yet, and may have cost something before. */
    #agentUsd;
    constructor({ costUsd, agentCostUsd }) {
        this.#costUsd = costUsd;
        this.#agentUsd = agentCostUsd;
    }
    get totalUsd() {
        return this.#costUsd;
    }
    get state() {
        return { costUsd: this.#costUsd, ...(this.#agentUsd !== undefined && { agentCostUsd: this.#agentUsd }) };
    }
    /** Where the agent stands before its first turn here. */
    startFrom(agentUsd) {
        this.#agentUsd = agentUsd;
    }
    /** @param isReplay it is told of what was before */
    told(agentUsd, isReplay) {
        if (isReplay) {
            this.#agentUsd ??= agentUsd;
            return;
        }
        const before = this.#agentUsd ?? agentUsd;
        // One that counts less than before has begun to count anew.
        this.#costUsd += agentUsd >= before ? agentUsd - before : agentUsd;
        this.#agentUsd = agentUsd;
    }
}
//# sourceMappingURL=cost.js.map