/** It gets its place, and with it its id, when it is written down: who has read one has read all that were there before. */
export class PlannedInFeed {
    #told;
    #parts;
    #placed;
    #deliveries = [];
    #isKept = false;
    constructor(told, parts) {
        this.#told = told;
        this.#parts = parts;
    }
    get isKept() {
        return this.#isKept;
    }
    #place() {
        const { feed, deliveriesOf } = this.#parts;
        const placed = feed.place(this.#told);
        this.#placed = placed;
        this.#deliveries = deliveriesOf(placed.notification);
        return placed;
    }
    write() {
        const { kept } = this.#place();
        const deliveries = this.#deliveries.flatMap((delivery) => delivery.kept ?? []);
        return this.#parts.feed.ridesAlong ? { notification: kept, deliveries } : { deliveries };
    }
    written() {
        const { feed } = this.#parts;
        this.#isKept = true;
        if (feed.ridesAlong)
            feed.commit(this.#placed);
        else
            feed.add(this.#placed);
    }
    unwritten() {
        this.#parts.feed.renounce(this.#placed);
        this.#placed = undefined;
    }
    keep() {
        this.#isKept = true;
        this.#parts.feed.add(this.#place());
        for (const delivery of this.#deliveries)
            delivery.keep();
    }
    send = () => {
        if (!this.#placed)
            return;
        this.#parts.tell(this.#placed.notification);
        for (const delivery of this.#deliveries)
            delivery.send();
    };
}
/** What is told, once, of something that may come to nothing, whichever of several writes keeps it first. */
export class PlannedOnce {
    #deliveries;
    #onSend;
    #isKept = false;
    #isSent = false;
    #isWithdrawn = false;
    /** @param onSend who else is told, with or without deliveries */
    constructor(deliveries, onSend = () => { }) {
        this.#deliveries = deliveries;
        this.#onSend = onSend;
    }
    get isKept() {
        return this.#isKept;
    }
    write() {
        return { deliveries: this.#isKept || this.#isWithdrawn ? [] : this.#deliveries.flatMap(({ kept }) => kept ?? []) };
    }
    written() {
        this.#isKept = true;
        if (this.#isWithdrawn)
            this.#takeBack();
    }
    unwritten() { }
    keep() {
        if (this.#isKept || this.#isWithdrawn)
            return;
        this.#isKept = true;
        for (const delivery of this.#deliveries)
            delivery.keep();
    }
    send = () => {
        if (!this.#isKept || this.#isSent || this.#isWithdrawn)
            return;
        this.#isSent = true;
        this.#onSend();
        for (const delivery of this.#deliveries)
            delivery.send();
    };
    /** It came to nothing: nobody is told, also when a write that has it is still under way. */
    withdraw() {
        this.#isWithdrawn = true;
        if (this.#isKept)
            this.#takeBack();
    }
    #takeBack() {
        for (const delivery of this.#deliveries)
            delivery.withdraw();
    }
}
/** What a write keeps of what is told of its events. */
export function along(told) {
    const kept = told.map((planned) => planned.write());
    return {
        deliveries: kept.flatMap(({ deliveries }) => deliveries),
        notifications: kept.flatMap(({ notification }) => notification ?? []),
        usage: kept.flatMap(({ usage }) => usage ?? []),
    };
}
//# sourceMappingURL=planned.js.map