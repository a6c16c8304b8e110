import { WallAlarm } from '../lib/wall-alarm.js';
const DAY_MS = 24 * 60 * 60 * 1000;
/** `YYYY-MM-DD` in UTC. */
export const utcDay = (at) => new Date(at).toISOString().slice(0, 10);
/** Days since the epoch. */
const dayNumber = (at) => Math.floor(at / DAY_MS);
/** The cap that holds when a job and the queue may both have one; `undefined`: none. */
export const stricter = (a, b) => a === undefined ? b : b === undefined ? a : Math.min(a, b);
/** The tokens of all jobs of a UTC day, against the limit of a day. */
export class DailyBudget {
    limit;
    #clock;
    #adapter;
    #rollover;
    /** The day that `used` is about. */
    #day = Number.NaN;
    #used = 0;
    /** The day that was last asked for by its name. */
    #named = { number: Number.NaN, name: '' };
    /** @param onRollover called when a day with an exhausted budget is over */
    constructor(given) {
        this.limit = given.limit;
        this.#clock = given.clock;
        this.#adapter = given.adapter;
        this.#rollover = new WallAlarm(given.clock, given.onRollover);
    }
    get today() {
        const now = this.#clock.now();
        if (this.#named.number !== dayNumber(now))
            this.#named = { number: dayNumber(now), name: utcDay(now) };
        return this.#named.name;
    }
    /** Whether the counter of today was read. */
    get isCurrent() {
        return this.#day === dayNumber(this.#clock.now());
    }
    /** Of today, as far as it is known. */
    get used() {
        return this.isCurrent ? this.#used : 0;
    }
    get exhausted() {
        return this.limit !== undefined && this.used >= this.limit;
    }
    /** When an exhausted budget is there again. */
    get resumesAt() {
        return this.exhausted ? (this.#day + 1) * DAY_MS : undefined;
    }
    /** Reads the counter when a day has begun, in whichever direction the clock went. */
    async refresh() {
        if (this.isCurrent)
            return;
        const { today } = this;
        this.report(today, await this.#adapter.dailyTokens(today));
    }
    /** Takes in the total that the adapter has for a day. */
    report(day, total) {
        if (day !== this.today)
            return;
        this.#used = this.isCurrent ? Math.max(this.#used, total) : total;
        this.#day = dayNumber(this.#clock.now());
        this.#rollover.set(this.resumesAt);
    }
    /** Takes in the total as it is now, whatever others have made of it. */
    become(day, total) {
        if (day !== this.today)
            return;
        this.#used = total;
        this.#day = dayNumber(this.#clock.now());
        this.#rollover.set(this.resumesAt);
    }
    /** Takes in a total from which something was taken back. */
    correct(day, total) {
        if (day === this.today && this.isCurrent)
            this.#used = total;
        this.#rollover.set(this.resumesAt);
    }
    stop() {
        this.#rollover.set(undefined);
    }
}
//# sourceMappingURL=budgets.js.map