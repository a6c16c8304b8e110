import { LazyMap } from '../../lib/lazy-map.js';
/** What an execution comes to when its turn is cut off. */
export const interruptedResult = (error) => ({
    status: 'failed',
    reason: 'interrupted',
    error,
});
export const INTERRUPTED = interruptedResult('The turn was interrupted.');
/** The deferred executions of one session: what it waits for, and what was settled in its life. */
export class DeferredExecutions {
    #pending = new LazyMap();
    /** Since when those were waited for whose results are told later. */
    #takenOff;
    #settled;
    get size() {
        return this.#pending.size;
    }
    list() {
        return [...this.#pending.values()].map(({ since: _since, ...execution }) => execution);
    }
    get settled() {
        return [...(this.#settled ?? [])];
    }
    /** Puts an execution on the list; the event that tells it was dispatched. */
    add({ executionId, toolName, expiresAt }, now) {
        const pending = { executionId, toolName, ...(expiresAt !== undefined && { expiresAt }) };
        this.#pending.set(executionId, { ...pending, since: now });
        return { type: 'execution_dispatched', ...pending, backend: 'remote', deferred: true };
    }
    /** Leaves only those that are listed, by their ids. */
    retain(ids) {
        for (const executionId of this.#pending.keys())
            if (!ids.has(executionId))
                this.#pending.delete(executionId);
    }
    /** Takes an execution off the list whose result is told later. */
    takeOff(executionId) {
        const pending = this.#pending.get(executionId);
        if (!pending)
            return;
        this.#takenOff ??= new Map();
        this.#takenOff.set(executionId, pending.since);
        this.#pending.delete(executionId);
    }
    remember(settled) {
        for (const executionId of settled)
            this.#settle(executionId);
    }
    #settle(executionId) {
        this.#settled ??= new Set();
        this.#settled.add(executionId);
    }
    /** Forgets one that turned out to be another session's: its results are that one's. */
    disown(executionId) {
        this.#settled?.delete(executionId);
    }
    /** Takes an execution off the list; the event that tells its result. */
    settle(executionId, result, now) {
        const since = this.#pending.get(executionId)?.since ?? this.#takenOff?.get(executionId);
        this.#pending.delete(executionId);
        this.#takenOff?.delete(executionId);
        this.#settle(executionId);
        const rest = { ...(result.logs && { logs: result.logs }), ...(since !== undefined && { durationMs: now - since }) };
        return result.status === 'ok'
            ? { type: 'execution_result', executionId, output: result.output, ...rest }
            : { type: 'execution_failed', executionId, reason: result.reason, error: result.error, ...rest };
    }
}
//# sourceMappingURL=deferred-executions.js.map