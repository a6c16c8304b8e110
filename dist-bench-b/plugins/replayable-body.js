/** So much is kept until somebody has begun to answer: most bodies are smaller, and may go to another node after all. */
const KEPT_BYTES = 64 * 1024;
/** The body of a request on its way to another node: passed on as it comes, and little enough of it can be sent once more. */
export class ReplayableBody {
    isEmpty;
    #source;
    #kept = [];
    #bytes = 0;
    #isSettled = false;
    #isCut = false;
    #target;
    #isTouched = false;
    #hasEnded = false;
    constructor(source) {
        const { 'content-length': length, 'transfer-encoding': encoding } = source.headers;
        this.isEmpty = encoding === undefined && (length === undefined || Number(length) === 0);
        this.#source = source;
    }
    /** So much of it has come. */
    get bytes() {
        return this.#bytes;
    }
    /** Whether something of it was read. */
    get isTouched() {
        return this.#isTouched;
    }
    /** Whether all that was read is still there. */
    get canReplay() {
        return !this.#isCut;
    }
    /** Whether all of it was passed on. */
    get isSent() {
        return this.isEmpty || this.#hasEnded;
    }
    pipeTo(target) {
        this.#target = target;
        for (const chunk of this.#kept)
            target.write(chunk);
        if (this.#hasEnded) {
            target.end();
            return;
        }
        if (!this.#isTouched) {
            this.#isTouched = true;
            this.#source.on('data', (chunk) => this.#pass(chunk));
            this.#source.once('end', () => {
                this.#hasEnded = true;
                this.#target?.end();
            });
            this.#source.once('error', () => this.#target?.destroy());
        }
        target.on('drain', () => this.#source.resume());
        this.#source.resume();
    }
    /** It goes to somebody else, if at all. */
    detach() {
        this.#target = undefined;
        if (this.#isTouched)
            this.#source.pause();
    }
    /** It will not be sent again; what comes when nobody reads it any more is dropped. */
    settle() {
        this.#isSettled = true;
        this.#kept = [];
        this.#target?.once('close', () => {
            this.#target = undefined;
            this.#source.resume();
        });
    }
    #pass(chunk) {
        this.#bytes += chunk.length;
        if (this.#bytes <= KEPT_BYTES && !this.#isSettled)
            this.#kept.push(chunk);
        else {
            this.#isCut = true;
            this.#kept = [];
        }
        if (this.#target?.write(chunk) === false)
            this.#source.pause();
    }
}
//# sourceMappingURL=replayable-body.js.map