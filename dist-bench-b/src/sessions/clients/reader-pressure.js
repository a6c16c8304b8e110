import { Pressure } from '../../lib/pressure.js';
/** How long an engine is kept waiting for readers that are too far behind; they are not waited for again until they have come that far. */
const READERS_MS = 10_000;
/**
 * Keeps an engine from running away from its readers where only memory serves them: it is asked to wait while every one of them is
 * behind by more than half of what the log keeps.
 */
export class ReaderPressure {
    #clock;
    #log;
    #pressure;
    /** Where a reader has to come; the first one that does ends the waiting. */
    #markSeq = 0;
    #waitedFor = new Set();
    /** Who did not come in time, and how far they have to come. */
    #givenUp = new Map();
    constructor(clock, log) {
        this.#clock = clock;
        this.#log = log;
    }
    get drained() {
        return this.#pressure?.off;
    }
    /** The log has grown. */
    look(readers) {
        if (this.#pressure)
            return;
        let farthestSeq = 0;
        const behind = [];
        for (const reader of readers) {
            if (!this.#isWaitedFor(reader))
                continue;
            if (reader.cursor >= this.#log.visibleSeq)
                return;
            farthestSeq = Math.max(farthestSeq, reader.cursor);
            behind.push(reader);
        }
        const markSeq = behind.length > 0 ? this.#log.halfwaySeq : undefined;
        if (markSeq === undefined || farthestSeq >= markSeq)
            return;
        this.#markSeq = markSeq;
        this.#pressure = new Pressure(this.#clock, READERS_MS, () => this.#giveUp());
        for (const reader of behind)
            this.join(reader);
    }
    #isWaitedFor(reader) {
        if (reader.closed)
            return false;
        const untilSeq = this.#givenUp.get(reader);
        if (untilSeq !== undefined && reader.cursor < untilSeq)
            return false;
        this.#givenUp.delete(reader);
        return true;
    }
    /** One more reader is there. */
    join(reader) {
        const pressure = this.#pressure;
        if (!pressure)
            return;
        this.#waitedFor.add(reader);
        reader.onceAt(this.#markSeq, () => {
            if (this.#pressure === pressure)
                this.takeOff();
        });
    }
    leave(reader) {
        this.#givenUp.delete(reader);
        if (this.#waitedFor.delete(reader) && this.#waitedFor.size === 0)
            this.takeOff();
    }
    #giveUp() {
        for (const reader of this.#waitedFor)
            this.#givenUp.set(reader, this.#markSeq);
        this.takeOff();
    }
    takeOff() {
        this.#pressure?.takeOff();
        this.#pressure = undefined;
        this.#waitedFor.clear();
    }
}
//# sourceMappingURL=reader-pressure.js.map