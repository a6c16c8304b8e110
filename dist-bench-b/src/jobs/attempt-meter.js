const NOTHING = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 };
/** What an attempt has used so far. */
export class AttemptMeter {
    /** The sum of the model calls that were told. */
    #calls;
    /** What the turn said at its end; it is then the whole truth, unless calls of an earlier leg are missing in it. */
    #turn = NOTHING;
    #cost = 0;
    #numTurns = 0;
    constructor(notes) {
        this.#calls = notes?.usage ?? NOTHING;
    }
    /** Every event once, with the session as it left it. */
    onEvent(event, session) {
        if (event.type === 'assistant_message' && !event.replay)
            this.#calls = sum(this.#calls, event.message.usage);
        else if (event.type === 'turn_completed')
            this.#turn = sum(this.#turn, event.usage);
        this.readTotals(session);
    }
    /** Cost and turns are running totals of the session. */
    readTotals({ cost, numTurns }) {
        this.#cost = cost;
        this.#numTurns = numTurns;
    }
    /** Takes over what a session says of itself that nobody followed to its end. */
    readSession(session) {
        this.#turn = sum(NOTHING, session.usage);
        this.readTotals(session);
    }
    get usage() {
        return tokensOf(this.#calls) > tokensOf(this.#turn) ? this.#calls : this.#turn;
    }
    /** Input, output, cache creation and cache read. */
    get tokens() {
        return tokensOf(this.usage);
    }
    /** The usage of a job whose earlier attempts came to `before`. */
    addedTo(before) {
        return {
            tokens: before.tokens + this.tokens,
            ...sum(before, this.usage),
            cost: before.cost + this.#cost,
            numTurns: before.numTurns + this.#numTurns,
        };
    }
}
const tokensOf = ({ inputTokens, outputTokens, cacheCreationTokens, cacheReadTokens }) => inputTokens + outputTokens + cacheCreationTokens + cacheReadTokens;
/** What an engine tells is added up, not trusted: a count that is none is none. */
function sum(a, b) {
    return {
        inputTokens: a.inputTokens + count(b?.inputTokens),
        outputTokens: a.outputTokens + count(b?.outputTokens),
        cacheCreationTokens: a.cacheCreationTokens + count(b?.cacheCreationTokens),
        cacheReadTokens: a.cacheReadTokens + count(b?.cacheReadTokens),
    };
}
const count = (value) => (Number.isFinite(value) && value > 0 ? value : 0);
//# sourceMappingURL=attempt-meter.js.map