import { randomBytes } from 'node:crypto';
/** Under which the key of answer links is kept. */
export const ANSWER_KEY = 'answer-links';
export const newAnswerKey = () => randomBytes(32).toString('base64url');
/**
 * The key that answer links are signed with. It is read again for each use, so that a rotation by another process holds from the next
 * use on; reads at the same time are one.
 */
export class AnswerKeys {
    #store;
    #reading;
    constructor(store) {
        this.#store = store;
    }
    /** @throws what the store throws */
    current() {
        this.#reading ??= this.#read().finally(() => {
            this.#reading = undefined;
        });
        return this.#reading;
    }
    async #read() {
        const kept = (await this.#store.key(ANSWER_KEY)) ?? (await this.#store.keyOnce(ANSWER_KEY, newAnswerKey()));
        return Buffer.from(kept, 'base64url');
    }
}
//# sourceMappingURL=answer-keys.js.map