import { toError } from '../errors.js';
const NOBODY = [];
/**
 * Who is told what happened. A listener never runs inside the change that it is told of: deliveries wait in a queue for the next
 * microtask, and what a listener causes comes after all that happened before it.
 */
export class Listeners {
    /** Never changed, but replaced: whoever goes through one is not disturbed, and an array costs no iterator. */
    #entries = new Map();
    #onError;
    #queue = [];
    /** @param onError told of every listener that throws or rejects; the other listeners are not affected */
    constructor(onError) {
        this.#onError = onError;
    }
    /**
     * @param listener may be async; its promise is not waited for
     * @param isFor what it wants to hear of, by what `emit` is given beside the payload; default: everything
     * @returns unsubscribes at once, also from what was emitted and not yet delivered
     */
    on(event, listener, isFor) {
        const entry = { listener, isFor, isGone: false };
        this.#entries.set(event, [...this.#listening(event), entry]);
        return () => {
            entry.isGone = true;
            this.#entries.set(event, this.#listening(event).filter((one) => one !== entry));
        };
    }
    #listening(event) {
        return this.#entries.get(event) ?? NOBODY;
    }
    /** Whether anybody listens, for a payload that is expensive to build. */
    has(event, about) {
        return this.#listening(event).some(({ isFor }) => isFor?.(about) ?? true);
    }
    /** Tells those who listen now. */
    emit(event, payload, about) {
        const idle = this.#queue.length === 0;
        for (const entry of this.#listening(event))
            if (entry.isFor?.(about) ?? true)
                this.#queue.push({ entry, event, payload });
        if (idle && this.#queue.length > 0)
            queueMicrotask(() => this.#drain());
    }
    #drain() {
        let next = 0;
        try {
            while (next < this.#queue.length) {
                const delivery = this.#queue[next];
                // a queue that was long may outlive this as garbage, and what it holds with it
                this.#queue[next++] = undefined;
                this.#deliver(delivery);
            }
        }
        finally {
            // Not empty only when onError itself threw: that is the host's to see, and costs nobody else a delivery.
            this.#queue = this.#queue.slice(next);
            if (this.#queue.length > 0)
                queueMicrotask(() => this.#drain());
        }
    }
    #deliver({ entry, event, payload }) {
        if (entry.isGone)
            return;
        try {
            const result = entry.listener(payload);
            if (result instanceof Promise)
                result.catch((thrown) => this.#onError(toError(thrown), event));
        }
        catch (thrown) {
            this.#onError(toError(thrown), event);
        }
    }
}
//# sourceMappingURL=listeners.js.map