import { GatewayError, toError } from '../errors.js';
import { delayAfter } from './backoff.js';
import { within } from './within.js';
/** Whoever asks for something that has to be kept is refused when that takes longer. Milliseconds. */
export const PATIENCE_MS = 8_000;
/** How long somebody goes on waiting for the storage, over all that is asked of it for them. */
export class Patience {
    #clock;
    #since;
    #forMs;
    /** @param waitedMs for which they have waited for it already */
    constructor(clock, waitedMs = 0) {
        this.#clock = clock;
        this.#since = clock.now();
        this.#forMs = Math.max(0, PATIENCE_MS - waitedMs);
    }
    /** Never more than there was, whatever the clock does. */
    get leftMs() {
        const passedMs = Math.max(0, this.#clock.now() - this.#since);
        return Math.max(0, this.#forMs - passedMs);
    }
    /** Waits for what is not the storage's, which takes nothing of it. */
    async apart(work) {
        const from = this.#clock.now();
        try {
            return await work;
        }
        finally {
            this.#since += Math.max(0, this.#clock.now() - from);
        }
    }
}
const RETRY = { firstMs: 500, longestMs: 30_000 };
/** To the caller "come again", with the cause for the log. */
export const unavailable = (cause) => new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause, retryAfterS: 5 });
/** Of what is only read: nothing comes of it later. @throws SG_ERR_STORE_UNAVAILABLE */
export const tooLate = () => {
    throw unavailable();
};
/** The same of what the storage was given and does not answer: only the end of the process can make it true. */
export const overdue = () => new GatewayError('SG_ERR_STORE_UNAVAILABLE', {
    detail: 'The storage does not answer. What it still keeps of this is taken back, unless the gateway ends before that. Try again shortly.',
    retryAfterS: 5,
});
/**
 * Does something that has to be kept for somebody who does not wait for ever.
 * @param work takes back what it has done when they were refused meanwhile: they were told that nothing was
 * @param options.onLate told when they are refused, with what is still under way
 * @param options.patience what is left of theirs; default: they come right now
 * @throws SG_ERR_STORE_UNAVAILABLE when it takes too long
 */
export function patiently(clock, work, { onLate, patience } = {}) {
    const leftMs = patience ? patience.leftMs : PATIENCE_MS;
    if (leftMs === 0)
        return Promise.reject(overdue());
    let refused = false;
    const working = work(() => refused);
    const late = () => {
        refused = true;
        onLate?.(working);
        throw overdue();
    };
    return within(leftMs, working, { clock, onLate: late });
}
/** Writes until it works. */
export async function persistently(write, { logger, retryAfter, signal }) {
    for (let tries = 1;; tries++) {
        try {
            return await write();
        }
        catch (error) {
            if (signal?.aborted)
                throw error;
            const retryInMs = delayAfter(tries, RETRY);
            logger.error({ err: toError(error), retryInMs }, 'something could not be kept; it is tried again');
            await new Promise((resolve) => {
                const go = () => {
                    timer.cancel();
                    signal?.removeEventListener('abort', go);
                    resolve();
                };
                const timer = retryAfter(retryInMs, go);
                signal?.addEventListener('abort', go);
            });
        }
    }
}
//# sourceMappingURL=patience.js.map