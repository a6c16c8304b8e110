import { RawSocket } from './raw-socket.js';
/** Many clients of one stream that only count; tells when the last of them has passed a mark. */
export class Flock {
    #sockets = [];
    #waitingAt = new Map();
    #size;
    #every;
    #onPassed;
    /**
     * @param every messages from one mark to the next
     * @param onPassed all clients have passed one more mark
     */
    constructor(size, every, onPassed) {
        this.#size = size;
        this.#every = every;
        this.#onPassed = onPassed;
    }
    /** @param greeting messages that a client is sent when it comes, before anything that counts */
    async open(url, greeting) {
        for (let n = 0; n < this.#size; n++) {
            let next = greeting + this.#every;
            const onProgress = ({ messages }) => {
                for (; messages >= next; next += this.#every)
                    this.#pass(next);
            };
            this.#sockets.push(await RawSocket.open(url, { onProgress }));
        }
        while (this.#sockets.some(({ messages }) => messages < greeting))
            await new Promise(setImmediate);
    }
    #pass(mark) {
        const passed = (this.#waitingAt.get(mark) ?? 0) + 1;
        if (passed < this.#size)
            this.#waitingAt.set(mark, passed);
        else {
            this.#waitingAt.delete(mark);
            this.#onPassed();
        }
    }
    drop() {
        for (const socket of this.#sockets)
            socket.drop();
    }
}
//# sourceMappingURL=flock.js.map