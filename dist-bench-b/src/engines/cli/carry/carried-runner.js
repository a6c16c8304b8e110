import { setTimeout as sleep } from 'node:timers/promises';
import { toError } from '../../../errors.js';
import { delayAfter } from '../../../lib/backoff.js';
import { ForwardingHost, ForwardingRunner } from '../../forwarding.js';
const RETRY = { firstMs: 100, longestMs: 5_000 };
/** What cannot be kept after so many tries is left to the next turn. About half a minute. */
const MOST_TRIES = 10;
/**
 * A runner whose agent goes on at any node: its files are brought before it starts, and what it adds is kept before the end of a turn is
 * told, and once more when it is gone.
 */
export class CarriedRunner extends ForwardingRunner {
    #options;
    /** One thing at a time; never rejects. */
    #carrying = Promise.resolve();
    #isClosed = false;
    constructor(options) {
        super(options.runner);
        this.#options = options;
    }
    async start(host) {
        if (this.#options.isRestored)
            await this.#options.carrier.bring();
        await super.start(new CarryingHost(host, () => this.#options.runner.written.last, (last) => this.#carry(last)));
    }
    async close() {
        this.#isClosed = true;
        await super.close();
        await this.#carry();
    }
    #carry(last) {
        this.#carrying = this.#carrying.then(() => this.#tryToCarry(last));
        return this.#carrying;
    }
    async #tryToCarry(last) {
        const { runner, carrier, sessionId, logger } = this.#options;
        if (runner.written.sessionId === '')
            return;
        for (let tries = 1;; tries++) {
            try {
                const isFound = await carrier.carry(runner.written.sessionId, last);
                if (!isFound && last !== undefined)
                    logger?.warn({ sessionId }, 'an agent has written nothing down where it is looked for: its session goes on here alone');
                return;
            }
            catch (error) {
                if (tries === MOST_TRIES || this.#isClosed) {
                    const said = 'what an agent has written down could not be kept for other nodes; it is tried again with its next turn';
                    logger?.error({ sessionId, err: toError(error) }, said);
                    return;
                }
                await sleep(delayAfter(tries, RETRY));
            }
        }
    }
}
/** Holds the end of a turn, and what comes after it, back until what the agent wrote down is kept. */
class CarryingHost extends ForwardingHost {
    #last;
    #carry;
    #held = [];
    #passing;
    constructor(host, last, carry) {
        super(host);
        this.#last = last;
        this.#carry = carry;
    }
    emit(event) {
        if (!this.#passing && event.type !== 'turn_completed') {
            super.emit(event);
            return;
        }
        this.#held.push({ event, last: this.#last() });
        this.#passing ??= this.#pass();
    }
    async requestPermission(ask) {
        await this.#passing;
        return super.requestPermission(ask);
    }
    async deferExecution(execution) {
        await this.#passing;
        await super.deferExecution(execution);
    }
    waitForExecutions() {
        if (this.#passing)
            void this.#passing.then(() => super.waitForExecutions());
        else
            super.waitForExecutions();
    }
    async #pass() {
        for (let next = this.#held[0]; next; next = this.#held[0]) {
            if (next.event.type === 'turn_completed')
                await this.#carry(next.last);
            this.#held.shift();
            super.emit(next.event);
        }
        this.#passing = undefined;
    }
}
//# sourceMappingURL=carried-runner.js.map