/** Targets of the operator whose last attempt failed. */
export class FailingTargets {
    #failing = new Map();
    onOutcome({ key, name }, at, { status, error }) {
        // those that callers name come and go with their jobs
        if (name === undefined)
            return;
        if (error === undefined) {
            this.#failing.delete(key);
            return;
        }
        const { since = at, failures = 0 } = this.#failing.get(key) ?? {};
        this.#failing.set(key, { since, failures: failures + 1, error, ...(status !== undefined && { status }) });
    }
    of({ key }) {
        return this.#failing.get(key);
    }
}
//# sourceMappingURL=failing-targets.js.map