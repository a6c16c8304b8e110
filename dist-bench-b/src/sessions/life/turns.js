import { GatewayError } from '../../errors.js';
const MAX_WAITING = 100;
/** One turn at a time: messages that come during a turn wait for it, in order. */
export class Turns {
    /** Whether a turn is in progress. */
    active = false;
    #waiting;
    /** Whether a turn is in progress or one is about to begin. */
    get busy() {
        return this.active || this.#waiting !== undefined;
    }
    get waiting() {
        return this.#waiting;
    }
    /** @throws SG_ERR_TOO_MANY when a hundred wait already */
    add(message, first) {
        if (this.#waiting && this.#waiting.length >= MAX_WAITING)
            throw new GatewayError('SG_ERR_TOO_MANY', { detail: 'Too many messages wait for this session.', retryAfterS: 1 });
        this.#waiting ??= [];
        if (first)
            this.#waiting.unshift(message);
        else
            this.#waiting.push(message);
    }
    /** The message whose turn begins now, if one waits and none is in progress. */
    begin() {
        if (this.active || !this.#waiting)
            return undefined;
        const message = this.#waiting.shift();
        if (this.#waiting.length === 0)
            this.#waiting = undefined;
        this.active = true;
        return message;
    }
    complete() {
        this.active = false;
    }
    clear() {
        this.active = false;
        this.#waiting = undefined;
    }
    restore(active, waiting) {
        this.active = active;
        this.#waiting = waiting && waiting.length > 0 ? [...waiting] : undefined;
    }
}
//# sourceMappingURL=turns.js.map