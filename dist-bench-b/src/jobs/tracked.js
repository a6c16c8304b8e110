export function tracked(run, claimed) {
    let settle = () => { };
    const settled = new Promise((resolve) => {
        settle = resolve;
    });
    return { run, claimed, parked: false, writing: Promise.resolve(), settled, settle };
}
/** What sessions of jobs tell before their jobs are taken up, from the start on and whenever those of another process are expected. */
export class MissedEvents {
    #bySession = new Map();
    #expecting = 1;
    /** Whether jobs are still to be taken up; nothing is missed any more after that. */
    get expected() {
        return this.#expecting > 0;
    }
    note(told) {
        if (!this.expected)
            return;
        const missed = this.#bySession.get(told.sessionId);
        if (missed)
            missed.push(told);
        else
            this.#bySession.set(told.sessionId, [told]);
    }
    of(sessionId) {
        return this.#bySession.get(sessionId) ?? [];
    }
    expect() {
        this.#expecting++;
    }
    tookUp() {
        this.#expecting = Math.max(0, this.#expecting - 1);
        if (!this.expected)
            this.#bySession.clear();
    }
}
//# sourceMappingURL=tracked.js.map