import { statement } from '../plan.js';
import { integerArray, textArray } from '../values.js';
const CHANGE = 'SELECT @change_jobs_1($1, $2, $3, $4, $5, $6, $7, $8, $9)';
const texts = (values) => textArray(values.map((value) => (value === null ? null : String(value))));
/** Changes of many jobs at once: one statement, as those that end in one turn are written together. */
export class JobChanges {
    #me;
    #changes = new Map();
    /** @param me whose they are while they are under way */
    constructor(me) {
        this.#me = me;
    }
    /** @returns false: it is among them already */
    add(change) {
        if (this.#changes.has(change.id))
            return false;
        this.#changes.set(change.id, change);
        return true;
    }
    statement() {
        const all = [...this.#changes.values()];
        return statement(CHANGE, textArray(all.map(({ id }) => id)), integerArray(all.map(({ rev }) => rev)), textArray(all.map(({ status }) => status)), texts(all.map(({ nextRunAt }) => nextRunAt)), texts(all.map(({ ready }) => ready)), texts(all.map(({ finishedAt }) => finishedAt)), texts(all.map(({ begins }) => begins)), textArray(all.map(({ info }) => info)), this.#me);
    }
}
//# sourceMappingURL=job-changes.js.map