/** Holds up whoever asks whether to go on. */
export class Hold {
    #over;
    #lift = () => { };
    /** Present while it holds; resolves when that is over. */
    get over() {
        return this.#over;
    }
    put() {
        this.#over ??= new Promise((resolve) => {
            this.#lift = resolve;
        });
    }
    lift() {
        this.#over = undefined;
        this.#lift();
    }
    /** Resolves when nothing holds, or the signal says that nobody waits. */
    async passed(signal) {
        while (this.#over && !signal?.aborted)
            await (signal ? orAborted(this.#over, signal) : this.#over);
    }
}
async function orAborted(over, signal) {
    let stop = () => { };
    const aborted = new Promise((resolve) => {
        stop = resolve;
        signal.addEventListener('abort', stop, { once: true });
    });
    await Promise.race([over, aborted]);
    signal.removeEventListener('abort', stop);
}
//# sourceMappingURL=hold.js.map