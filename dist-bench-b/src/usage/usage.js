import { invalidField } from '../errors.js';
import { patiently, persistently } from '../lib/patience.js';
import { visibleProfiles } from '../principal.js';
import { countOf, DAY_MS, dayOf } from './count.js';
const DEFAULT_DAYS = 30;
const MAX_DAYS = 400;
/** Of one answer. */
const MAX_ROWS = 10_000;
/** What was used, as daily sums: counted with the events that tell of it, never by reading logs. */
export class Usage {
    #parts;
    constructor(parts) {
        this.#parts = parts;
    }
    /** What an event counts for, to be kept with it; undefined: nothing. */
    count = (body, ts, session) => {
        const count = countOf(body, ts, session);
        return count && new PlannedCount(this.#parts, count);
    };
    /**
     * The sums of a caller's profiles.
     * @throws SG_ERR_VALIDATION naming the field · SG_ERR_STORE_UNAVAILABLE
     */
    async report(query, principal) {
        const { clock, store } = this.#parts;
        const { from, to } = this.#rangeOf(query);
        const by = [...new Set((query.by ?? 'day').split(','))];
        const profiles = visibleProfiles(principal);
        const range = { from, to, ...(profiles && { profiles }) };
        const sums = await patiently(clock, () => store.read(range, by, MAX_ROWS + 1));
        if (sums.length > MAX_ROWS)
            throw invalidField('by', `that is more than ${MAX_ROWS} rows: sum by less, or ask for fewer days.`);
        const rows = sums.map(({ costUsd, ...row }) => ({ ...row, ...(costUsd > 0 && { costUsd }) }));
        return { from, to, by, rows };
    }
    #rangeOf(query) {
        const to = momentOf('to', query.to) ?? Math.floor(this.#parts.clock.now() / DAY_MS) * DAY_MS;
        const from = momentOf('from', query.from) ?? to - (DEFAULT_DAYS - 1) * DAY_MS;
        if (from > to)
            throw invalidField('from', 'must not be after to.');
        if (to - from >= MAX_DAYS * DAY_MS)
            throw invalidField('from', `must be at most ${MAX_DAYS} days before to.`);
        return { from: dayOf(from), to: dayOf(to) };
    }
}
/** A count that whoever writes its event down keeps in the same write. */
class PlannedCount {
    #parts;
    #counts;
    #isKept = false;
    constructor(parts, count) {
        this.#parts = parts;
        this.#counts = [count];
    }
    get isKept() {
        return this.#isKept;
    }
    write() {
        return this.#parts.ridesAlong ? { deliveries: [], usage: this.#counts } : { deliveries: [] };
    }
    written() {
        this.#isKept = true;
        if (!this.#parts.ridesAlong)
            this.#add();
    }
    unwritten() { }
    keep() {
        this.#isKept = true;
        this.#add();
    }
    #add() {
        const { store } = this.#parts;
        void persistently(() => store.add(this.#counts), this.#parts);
    }
    send() { }
}
/** @throws SG_ERR_VALIDATION for a day that there is not */
function momentOf(name, day) {
    if (day === undefined)
        return undefined;
    const moment = Date.parse(`${day}T00:00:00Z`);
    if (Number.isNaN(moment) || dayOf(moment) !== day)
        throw invalidField(name, 'must be a day, as in 2026-01-31.');
    return moment;
}
//# sourceMappingURL=usage.js.map