import { failureOf, Refusal } from './failures.js';
import { inTransaction } from './transaction.js';
/**
 * Runs calls in one transaction: they become durable together. When one fails by more than its own arguments, each runs in a
 * transaction of its own, so that it hurts no other.
 * @param along done in the same transaction after them; it is left out of those
 */
export function runBatch(db, operations, calls, path, along) {
    try {
        return inTransaction(db, () => {
            const outcome = runAll(operations, calls);
            along?.();
            return outcome;
        });
    }
    catch (error) {
        if (calls.length === 1 && !along)
            return failed(error, path);
    }
    const outcome = { results: [], failures: [] };
    for (const [index, call] of calls.entries()) {
        const { results, failures } = runBatch(db, operations, [call], path);
        outcome.results.push(results[0]);
        for (const { failure } of failures)
            outcome.failures.push({ index, failure });
    }
    return outcome;
}
const failed = (error, path) => ({
    results: [undefined],
    failures: [{ index: 0, failure: failureOf(error, path) }],
});
function runAll(operations, calls) {
    const outcome = { results: [], failures: [] };
    for (const [index, [name, ...args]] of calls.entries()) {
        try {
            outcome.results.push(operations[name](...args));
        }
        catch (error) {
            if (!(error instanceof Refusal))
                throw error;
            outcome.results.push(undefined);
            outcome.failures.push({ index, failure: { code: error.code, message: error.message } });
        }
    }
    return outcome;
}
//# sourceMappingURL=batch.js.map