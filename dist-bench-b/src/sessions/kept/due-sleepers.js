import { toError } from '../../errors.js';
/** Those that are asked for at once. */
const BATCH = 200;
/** Until it is looked again where that failed, or where others may have left some. */
const AGAIN_MS = 30_000;
/** Sees to it that sleeping sessions which only the journal has are in memory when the first deadline of what they wait for comes. */
export class DueSleepers {
    #journal;
    #parts;
    #next;
    #looking = false;
    /** Somebody asked meanwhile. */
    #isBehind = false;
    #stopped = false;
    constructor(journal, parts) {
        this.#journal = journal;
        this.#parts = parts;
    }
    /** One is in the journal alone that wakes then. @param wakesAt epoch milliseconds; undefined: never by itself */
    expect(wakesAt) {
        if (wakesAt !== undefined)
            this.#lookAt(this.#parts.table.whenNear(wakesAt));
    }
    /** There may be some that nobody here knows of. */
    look() {
        this.#lookAt(this.#parts.clock.now());
    }
    stop() {
        this.#stopped = true;
        this.#next?.timer.cancel();
    }
    #lookAt(at, by = 'after') {
        const { clock } = this.#parts;
        if (this.#stopped || (this.#next && this.#next.at <= at))
            return;
        this.#next?.timer.cancel();
        const run = () => {
            this.#next = undefined;
            void this.#look();
        };
        const delayMs = at - clock.now();
        if (delayMs <= 0)
            run();
        else
            this.#next = { at, timer: by === 'after' ? clock.after(delayMs, run) : this.#parts.retryAfter(delayMs, run) };
    }
    /** Never rejects. */
    async #look() {
        if (this.#looking) {
            this.#isBehind = true;
            return;
        }
        this.#looking = true;
        try {
            do {
                this.#isBehind = false;
                await this.#takeNear();
            } while (this.#isBehind && !this.#stopped);
        }
        catch (error) {
            const { clock, logger } = this.#parts;
            logger.error({ err: toError(error) }, 'sessions whose time has come could not be looked for; it is tried again');
            this.#lookAt(clock.now() + AGAIN_MS, 'retryAfter');
        }
        finally {
            this.#looking = false;
        }
    }
    /** Those whose time is near, and then the first of the others is waited for. */
    async #takeNear() {
        const { clock, table, find, isElsewhere } = this.#parts;
        for (let after; !this.#stopped;) {
            const page = await this.#journal.dueFirst(BATCH, after);
            const far = page.find(({ wakesAt }) => !table.isNear(wakesAt));
            const near = page.filter((one) => table.isNear(one.wakesAt) && !table.get(one.id));
            await Promise.all(near.map(async ({ id }) => (await isElsewhere?.(id)) || find(id)));
            // of nodes that are gone by then nobody here is told
            if (isElsewhere)
                this.#lookAt(clock.now() + AGAIN_MS);
            if (far)
                return this.expect(far.wakesAt);
            if (page.length < BATCH)
                return;
            after = page.at(-1);
        }
    }
}
//# sourceMappingURL=due-sleepers.js.map