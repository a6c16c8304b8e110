/** Somebody is asked to wait: until it is taken off, or has been on for too long. */
export class Pressure {
    /** Resolves when there is nothing to wait for any more. */
    off;
    #limit;
    #resolve;
    constructor(clock, limitMs, onLimit) {
        this.off = new Promise((resolve) => {
            this.#resolve = resolve;
        });
        this.#limit = clock.after(limitMs, onLimit);
    }
    takeOff() {
        this.#limit.cancel();
        this.#resolve();
    }
}
//# sourceMappingURL=pressure.js.map