/** The prompts of a session, as the stream that the SDK reads for as long as it runs. */
export class PromptStream {
    #waiting = [];
    #ended = false;
    #wake = () => { };
    push(message) {
        this.#waiting.push(message);
        this.#wake();
    }
    end() {
        this.#ended = true;
        this.#wake();
    }
    async *[Symbol.asyncIterator]() {
        while (true) {
            yield* this.#waiting.splice(0);
            if (this.#ended)
                return;
            if (this.#waiting.length === 0)
                await new Promise((wake) => (this.#wake = wake));
        }
    }
}
//# sourceMappingURL=prompt-stream.js.map