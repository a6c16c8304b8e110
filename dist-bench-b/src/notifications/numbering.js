/**
 * Numbers for what is written at the same time by several writers, shown in the order of the numbers: a reader that has seen one has seen
 * all before it. What is written later has a greater number, whatever was written meanwhile.
 */
export class Numbering {
    /** Every number up to this one is shown, or belongs to nothing. */
    #head;
    #last;
    #settled = new Map();
    #show;
    /** @param show called for each item, in the order of their numbers */
    constructor(head, show) {
        this.#head = head;
        this.#last = head;
        this.#show = show;
    }
    get head() {
        return this.#head;
    }
    /** The next number; it holds back all later ones until it is settled. */
    take() {
        return ++this.#last;
    }
    /** @param item what was written under the number; undefined: nothing */
    settle(number, item) {
        if (number !== this.#head + 1) {
            this.#settled.set(number, item);
            return;
        }
        this.#head = number;
        if (item !== undefined)
            this.#show(number, item);
        while (this.#settled.has(this.#head + 1)) {
            const next = this.#settled.get(++this.#head);
            this.#settled.delete(this.#head);
            if (next !== undefined)
                this.#show(this.#head, next);
        }
    }
}
//# sourceMappingURL=numbering.js.map