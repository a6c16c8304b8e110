import { PATIENCE_MS } from '../../lib/patience.js';
import { Pressure } from '../../lib/pressure.js';
/** Beyond it an engine that can be slowed waits for the storage: enough to write on while it goes on, little enough to be written soon. */
const PRESSING_BYTES = 1024 * 1024;
/** What may wait to be written while nothing is taken: of one session, and of all together. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_BYTES_OF_ALL = 64 * 1024 * 1024;
/** What one session has said that is not durable, in bytes, the write that is under way included. */
export class Backlog {
    #clock;
    /** Of all sessions. */
    #all;
    #bytes = 0;
    #pressure;
    /** The storage did not keep up for so long that nobody waits for it, until it has caught up. */
    #isLate = false;
    constructor(clock, all) {
        this.#clock = clock;
        this.#all = all;
    }
    get bytes() {
        return this.#bytes;
    }
    /** Present while an engine should not add to it. */
    get drained() {
        return this.#pressure?.off;
    }
    /** @returns whether it is more than may wait while nothing is taken */
    add(bytes) {
        this.#bytes += bytes;
        this.#all.bytes += bytes;
        if (this.#bytes > PRESSING_BYTES && !this.#pressure && !this.#isLate)
            this.#press();
        return this.#bytes > MAX_BYTES || this.#all.bytes > MAX_BYTES_OF_ALL;
    }
    remove(bytes) {
        this.#bytes -= bytes;
        this.#all.bytes -= bytes;
        if (this.#bytes > PRESSING_BYTES)
            return;
        this.#isLate = false;
        this.relieve();
    }
    #press() {
        this.#pressure = new Pressure(this.#clock, PATIENCE_MS, () => {
            this.#isLate = true;
            this.relieve();
        });
    }
    /** The storage is not waited for any longer. */
    relieve() {
        this.#pressure?.takeOff();
        this.#pressure = undefined;
    }
}
//# sourceMappingURL=backlog.js.map