/** Counts what waits for targets that bound it, so that one that does not answer fills neither memory nor outbox. */
export class WaitingCounts {
    #waiting = new Map();
    /** @returns false when as many wait as may; to be followed by `leave` otherwise */
    enter({ key, maxWaiting }) {
        if (maxWaiting === undefined)
            return true;
        const waiting = this.#waiting.get(key) ?? 0;
        if (waiting >= maxWaiting)
            return false;
        this.#waiting.set(key, waiting + 1);
        return true;
    }
    leave({ key, maxWaiting }) {
        if (maxWaiting === undefined)
            return;
        const waiting = this.#waiting.get(key) - 1;
        if (waiting > 0)
            this.#waiting.set(key, waiting);
        else
            this.#waiting.delete(key);
    }
}
//# sourceMappingURL=waiting.js.map