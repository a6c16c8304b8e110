/** About 1 KB as it goes over the wire, like most messages of an agent. */
const TEXT = 'The quick brown fox jumps over the lazy dog.\n'.repeat(19);
export const assistantMessage = (n) => ({
    type: 'assistant_message',
    message: { role: 'assistant', content: [{ type: 'text', text: TEXT }] },
    uuid: `message-${n}`,
    parentToolUseId: null,
});
/** Makes events, no faster than the load process says that its clients take them. */
export class Producer {
    #emit;
    #made = 0;
    #taken = 0;
    #goOn;
    constructor(emit) {
        this.#emit = emit;
    }
    /** Resolves when all events were made. */
    async produce({ events, perTurn, window }) {
        this.#taken = this.#made;
        const end = this.#made + events;
        while (this.#made < end) {
            if (this.#made + perTurn > this.#taken + window)
                await new Promise((resolve) => {
                    this.#goOn = resolve;
                });
            for (let n = 0; n < perTurn; n++)
                this.#emit(assistantMessage(++this.#made));
            await new Promise(setImmediate);
        }
    }
    /** Every client has taken that many events more. */
    taken(events) {
        this.#taken += events;
        this.#goOn?.();
        this.#goOn = undefined;
    }
    /** Makes events at an even pace, whoever takes them; resolves with how many there were. */
    async pace({ perSecond, seconds }) {
        const start = performance.now();
        const total = perSecond * seconds;
        let made = 0;
        while (made < total) {
            const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * perSecond));
            for (; made < due; made++)
                this.#emit(assistantMessage(++this.#made));
            await new Promise((resolve) => setTimeout(resolve, 2));
        }
        return made;
    }
}
//# sourceMappingURL=producer.js.map