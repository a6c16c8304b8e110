/** Timers do not notice that a clock was set or that the machine slept; so the time is looked at this often. */
const LOOK_MS = 60_000;
/** Calls back when the wall clock has reached a time; one time at once. */
export class WallAlarm {
    #clock;
    #ring;
    #at = Infinity;
    #timer;
    constructor(clock, ring) {
        this.#clock = clock;
        this.#ring = ring;
    }
    /** @param at epoch milliseconds, `undefined` for never; takes the place of what was set before */
    set(at) {
        const next = at ?? Infinity;
        if (next === this.#at)
            return;
        this.#at = next;
        this.#timer?.cancel();
        this.#timer = undefined;
        if (this.#at !== Infinity)
            this.#arm();
    }
    #arm() {
        const inMs = Math.min(Math.max(this.#at - this.#clock.now(), 0), LOOK_MS);
        this.#timer = this.#clock.after(inMs, () => {
            if (this.#clock.now() < this.#at) {
                this.#arm();
                return;
            }
            this.#at = Infinity;
            this.#timer = undefined;
            this.#ring();
        });
    }
}
//# sourceMappingURL=wall-alarm.js.map