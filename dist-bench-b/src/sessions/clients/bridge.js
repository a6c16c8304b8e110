import { LazyMap } from '../../lib/lazy-map.js';
/** How long a client may take when the call names no limit of its own. */
const DEFAULT_CALL_TIMEOUT_MS = 300_000;
/**
 * Hands an engine's calls to the attached clients: every client is asked, the first answer wins, the others are told. A call that
 * nobody is there for waits for a client until its deadline.
 */
export class SessionBridge {
    #calls = new LazyMap();
    #clock;
    #clients;
    #closed = false;
    constructor(clock, clients) {
        this.#clock = clock;
        this.#clients = clients;
    }
    /** Frames that a client which attaches now still has to answer. */
    get pending() {
        return [...this.#calls.values()].map((call) => call.frame);
    }
    /** Rejects for a call that is not JSON: no client could be told of it. */
    async execute(call) {
        if (this.#closed)
            return failed('closed', 'The session has ended.');
        if (this.#calls.has(call.executionId))
            return failed('duplicate', 'A call with this executionId is already in progress.');
        const frame = { type: 'tool_call_request', ...JSON.parse(JSON.stringify(call)) };
        const timeoutMs = Math.min(call.limits?.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS, call.expiresAt === undefined ? Infinity : call.expiresAt - this.#clock.now());
        return new Promise((settle) => {
            const timer = this.#clock.after(timeoutMs, () => this.#cancel(call.executionId, 'timeout', 'No client answered in time.'));
            this.#calls.set(call.executionId, { frame, settle, timer });
            this.#clients.broadcast(frame);
        });
    }
    /**
     * @param answeredBy the client that need not be told; absent for an answer over REST
     * @returns false when no such call waits
     */
    settle(executionId, result, answeredBy) {
        const call = this.#take(executionId);
        if (!call)
            return false;
        this.#clients.broadcast({ type: 'tool_call_canceled', executionId, reason: 'answered' }, answeredBy);
        call.settle(result);
        return true;
    }
    cancelAll(reason, error) {
        for (const executionId of [...this.#calls.keys()])
            this.#cancel(executionId, reason, error);
    }
    close() {
        this.#closed = true;
        this.cancelAll('closed', 'The session has ended.');
    }
    #cancel(executionId, reason, error) {
        const call = this.#take(executionId);
        if (!call)
            return;
        this.#clients.broadcast({ type: 'tool_call_canceled', executionId, reason });
        call.settle(failed(reason, error));
    }
    #take(executionId) {
        const call = this.#calls.get(executionId);
        this.#calls.delete(executionId);
        call?.timer.cancel();
        return call;
    }
}
const failed = (reason, error) => ({ status: 'failed', reason, error });
//# sourceMappingURL=bridge.js.map