/** Of all slots the part that only targets with nothing under way may take, so that one which answers is served beside many that do not. */
const KEPT_FREE = 1 / 4;
/** The right to connect: targets are served in turn, however many deliveries wait for each. */
export class Slots {
    #perTarget;
    #total;
    /** Those with something under way or waiting, the one that was served longest ago first. */
    #targets = new Map();
    #underWay = 0;
    #closed = false;
    constructor({ perTarget = 8, total = 64 } = {}) {
        this.#perTarget = perTarget;
        this.#total = total;
    }
    /** Resolves when the target may be connected to, to be followed by `give`; false when it will not be any more. */
    take(name) {
        if (this.#closed)
            return Promise.resolve(false);
        const target = this.#targets.get(name) ?? { underWay: 0, waiting: [] };
        this.#targets.set(name, target);
        return new Promise((resolve) => {
            target.waiting.push(resolve);
            this.#serve();
        });
    }
    give(name) {
        const target = this.#targets.get(name);
        if (!target)
            return;
        target.underWay--;
        this.#underWay--;
        if (target.underWay === 0 && target.waiting.length === 0)
            this.#targets.delete(name);
        this.#serve();
    }
    /** Whoever waits, and comes from now on, is told that nothing is connected to any more. */
    close() {
        this.#closed = true;
        for (const { waiting } of this.#targets.values())
            for (const resolve of waiting.splice(0))
                resolve(false);
    }
    #serve() {
        for (let served = true; served && this.#underWay < this.#total;) {
            served = false;
            for (const [name, target] of this.#targets) {
                if (target.waiting.length === 0 || !this.#mayServe(target))
                    continue;
                target.underWay++;
                this.#underWay++;
                // to the end of the row
                this.#targets.delete(name);
                this.#targets.set(name, target);
                target.waiting.shift()(true);
                served = true;
                break;
            }
        }
    }
    #mayServe({ underWay }) {
        if (underWay >= this.#perTarget)
            return false;
        return underWay === 0 || this.#underWay < this.#total * (1 - KEPT_FREE);
    }
}
//# sourceMappingURL=slots.js.map