import { GatewayError } from '../errors.js';
/** How many sessions live, those being built included; parked and terminal ones do not. */
export class Places {
    #max;
    #onRoom;
    #taken = 0;
    /** @param onRoom one more may live, after there were as many as may */
    constructor(max, onRoom) {
        this.#max = max;
        this.#onRoom = onRoom;
    }
    get #hasRoom() {
        return this.#taken < this.#max;
    }
    /** @param reserved the place that was kept for it @throws SG_ERR_TOO_MANY */
    take(reserved) {
        if (!this.#hasRoom && !reserved)
            throw new GatewayError('SG_ERR_TOO_MANY', {
                detail: 'The gateway runs as many sessions as it may.',
                retryAfterS: 5,
            });
        this.#taken++;
        reserved?.release();
    }
    /** For a session that lives again: what was confirmed to it is not refused, so that there may be more than may. */
    retake() {
        this.#taken++;
    }
    leave() {
        this.#taken--;
        if (this.#taken === this.#max - 1)
            this.#onRoom();
    }
    /** Keeps a place; undefined while there is none. Giving it back is told to nobody: who keeps it knows. */
    reserve() {
        if (!this.#hasRoom)
            return undefined;
        this.#taken++;
        let isKept = true;
        return {
            release: () => {
                if (isKept)
                    this.#taken--;
                isKept = false;
            },
        };
    }
}
//# sourceMappingURL=places.js.map