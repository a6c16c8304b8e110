import { toError } from '../errors.js';
import { Anew } from '../lib/anew.js';
import { nextOf } from '../lib/node-numbers.js';
import { MAX_PAGE, MAX_PAGE_BYTES } from '../lib/paging.js';
/** What other processes have kept is looked for this often, where nobody says that there is something. */
const FOLLOW_MS = 1_000;
/**
 * The places of a feed that several processes write. A number is part of what is told, and so is given before the write: unique and rising,
 * but writes overtake each other. The place, by which the feed is read, is given by the database in the write, under a lock that is held
 * until the commit. So a reader that comes to any process with the last id that it has seen is given all that came after that one.
 */
export class SharedPlaces {
    #parts;
    #last = 0;
    /** Everything up to here was shown. */
    #head = 0;
    #headId;
    #reading = new Anew(() => this.#read());
    #timer;
    #isOpen = false;
    #closed = false;
    #fails = false;
    constructor(parts) {
        this.#parts = parts;
    }
    open(head) {
        this.#head = head;
        this.#isOpen = true;
        this.#followLater();
    }
    close() {
        this.#closed = true;
        this.#timer?.cancel();
    }
    get head() {
        return this.#head;
    }
    /** The id of the newest that was shown. */
    get headId() {
        return this.#headId;
    }
    /** A number that nobody else gives. */
    take() {
        const { clock, node } = this.#parts;
        this.#last = nextOf(node(), this.#last, clock.now());
        return this.#last;
    }
    /** Resolves when all are shown that were kept before the call. @throws what the store throws */
    follow() {
        return this.#reading.done();
    }
    /** As `follow`, when somebody said that there is something, or may be. */
    nudge() {
        if (this.#closed || !this.#isOpen)
            return;
        this.follow().then(() => {
            this.#fails = false;
        }, (error) => {
            if (!this.#fails && !this.#closed)
                this.#parts.logger.warn({ err: toError(error) }, 'notifications of other nodes cannot be read; it is tried again');
            this.#fails = true;
        });
    }
    /**
     * Where the notification with a number is, or was.
     * @returns `isLost`: something after it can no longer be read
     */
    async find(number, oldest) {
        const { store } = this.#parts;
        const { place = number, forgotten } = await store.shared.placeOf(number);
        if (place < forgotten)
            return { place, isLost: true };
        const range = { after: place, until: oldest - 1, since: 0 };
        const [lost] = range.until > place ? await store.read(range, { limit: 1, maxBytes: 0 }) : [];
        return { place, isLost: lost !== undefined };
    }
    async #read() {
        const { store, show } = this.#parts;
        const page = { limit: MAX_PAGE, maxBytes: MAX_PAGE_BYTES };
        for (;;) {
            const range = { after: this.#head, until: Number.MAX_SAFE_INTEGER, since: 0 };
            const found = await store.read(range, page);
            for (const kept of found) {
                this.#head = kept.number;
                this.#headId = idIn(kept);
                show(kept);
            }
            if (found.length === 0)
                return;
        }
    }
    #followLater() {
        if (this.#closed)
            return;
        this.#timer = this.#parts.clock.after(FOLLOW_MS, () => {
            this.nudge();
            this.#followLater();
        });
    }
}
const ID_START = '{"id":"';
/** The id of a notification: it comes first in its JSON. */
export const idIn = ({ json }) => json.slice(ID_START.length, json.indexOf('"', ID_START.length));
//# sourceMappingURL=shared-places.js.map