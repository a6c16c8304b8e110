import { SortedList } from './sorted-list.js';
import { WallAlarm } from './wall-alarm.js';
/** When things that have to wait fall due, by their ids; one timer for all of them. */
export class DueTimes {
    #clock;
    #alarm;
    #byId = new Map();
    #stopped = false;
    #inOrder = new SortedList((a, b) => a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    /** @param onDue called when at least one fell due, with those that did */
    constructor(clock, onDue) {
        this.#clock = clock;
        this.#alarm = new WallAlarm(clock, () => onDue(this.#dropDue()));
    }
    /** How many wait. */
    get size() {
        return this.#byId.size;
    }
    set(id, at) {
        this.delete(id);
        const due = { at, id };
        this.#byId.set(id, due);
        this.#inOrder.add(due);
        this.#setAlarm();
    }
    delete(id) {
        const due = this.#byId.get(id);
        if (!due)
            return;
        this.#byId.delete(id);
        this.#inOrder.delete(due);
        this.#setAlarm();
    }
    /** Nothing falls due any more. */
    stop() {
        this.#stopped = true;
        this.#setAlarm();
    }
    #setAlarm() {
        this.#alarm.set(this.#stopped ? undefined : this.#inOrder.first?.at);
    }
    #dropDue() {
        const ids = [];
        const now = this.#clock.now();
        for (let first = this.#inOrder.first; first && first.at <= now; first = this.#inOrder.first) {
            this.#inOrder.delete(first);
            this.#byId.delete(first.id);
            ids.push(first.id);
        }
        this.#setAlarm();
        return ids;
    }
}
//# sourceMappingURL=due-times.js.map