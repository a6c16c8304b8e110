import { DueTimes } from '../lib/due-times.js';
import { persistently } from '../lib/patience.js';
/** Jobs that are asked for at once. */
const PAGE = 1_000;
/** When queued jobs fall due that wait for their time: of an adapter that tells it, those that do so first, as the others can wait there. */
export class DelayedJobs {
    #options;
    #due;
    /** Those that fall due later are in the adapter alone. */
    #until = Number.POSITIVE_INFINITY;
    #reading = false;
    #stopped = false;
    constructor(options) {
        this.#options = options;
        this.#due = new DueTimes(options.clock, () => {
            options.onDue();
            this.#readOn();
        });
    }
    /** How many are known to wait. */
    get size() {
        return this.#due.size;
    }
    /** Reads those that fall due next, from an adapter that has `delayed`. @throws what the adapter throws */
    async read() {
        const { adapter, clock } = this.#options;
        // what comes to wait meanwhile may be missing in the page
        this.#until = Number.POSITIVE_INFINITY;
        const first = await adapter.delayed(clock.now(), PAGE);
        for (const { id, nextRunAt } of first)
            this.#due.set(id, nextRunAt);
        if (first.length >= PAGE)
            this.#until = first.at(-1).nextRunAt;
    }
    set(id, at) {
        if (at <= this.#until)
            this.#due.set(id, at);
        else
            this.delete(id);
    }
    delete(id) {
        this.#due.delete(id);
        this.#readOn();
    }
    stop() {
        this.#stopped = true;
        this.#due.stop();
    }
    /** Those of the page are gone: the next ones are to be known before they fall due. */
    #readOn() {
        if (this.#due.size > 0 || this.#until === Number.POSITIVE_INFINITY || this.#reading || this.#stopped)
            return;
        this.#reading = true;
        const reading = persistently(async () => {
            if (this.#stopped)
                return;
            await this.read();
            // nothing was known of what fell due since
            this.#options.onDue();
        }, this.#options);
        void reading.finally(() => {
            this.#reading = false;
        });
    }
}
//# sourceMappingURL=delayed-jobs.js.map