/** Runs tasks of the same key one after the other, of different keys at the same time. */
export class KeyedLock {
    #tails = new Map();
    /** Resolves with what `task` returns, once the tasks of this key that came before have settled. */
    run(key, task) {
        const before = this.#tails.get(key);
        const outcome = before ? before.then(task) : invoke(task);
        const tail = outcome.catch(() => { });
        this.#tails.set(key, tail);
        void tail.then(() => {
            if (this.#tails.get(key) === tail)
                this.#tails.delete(key);
        });
        return outcome;
    }
    /** True while a task of this key runs or waits. */
    isHeld(key) {
        return this.#tails.has(key);
    }
}
const invoke = async (task) => task();
//# sourceMappingURL=keyed-lock.js.map