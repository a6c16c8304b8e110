import { toError } from '../errors.js';
import { DueTimes } from '../lib/due-times.js';
const LANE = 'reminders';
/** Before it is looked again whether a request waits, when that could not be read. */
const RETRY_MS = 5_000;
/**
 * Reminders of requests that wait. Each stands in the outbox from the moment of the request on, kept in the same write, until it was
 * handed to its channel or the request was answered: so a restart forgets none and repeats none.
 */
export class Reminders {
    #options;
    #byId = new Map();
    #due;
    #started = false;
    #stopped = false;
    constructor(options) {
        this.#options = options;
        this.#due = new DueTimes(options.clock, (ids) => this.#onDue(ids));
    }
    /** What is to be kept with a request. */
    plan(notification) {
        const { request, sessionId, ts } = notification;
        if (notification.type !== 'permission_requested' || !request)
            return [];
        return this.#options.reminders.map(({ afterMs, channel }, index) => this.#planned({
            ...{ id: `${sessionId}:${request.id}:${index + 1}`, sessionId, requestId: request.id, channel },
            dueAt: ts + afterMs,
            message: { ...notification, reminder: index + 1 },
        }));
    }
    #planned(reminder) {
        const { outbox, outlasts } = this.#options;
        const { id, channel, dueAt, message } = reminder;
        const delivery = {
            ...{ type: message.type, payload: message, importance: 'normal', dueAt },
            origin: { kind: 'reminder', channel },
        };
        const kept = outlasts ? { id, lane: LANE, delivery } : undefined;
        return {
            kept,
            keep: () => kept && this.#ask(outbox.add(kept)),
            send: () => this.#await(reminder),
            withdraw: () => this.#drop(id),
        };
    }
    /** Whether requests are reminded of. */
    get any() {
        return this.#options.reminders.length > 0;
    }
    /** A request was answered: it is not reminded of any more. */
    onSettled(sessionId, requestId) {
        for (const index of this.#options.reminders.keys()) {
            const id = `${sessionId}:${requestId}:${index + 1}`;
            if (this.#byId.has(id))
                this.#drop(id);
        }
    }
    /** Takes one over that an earlier process left. */
    takeOver({ id, stored }) {
        const message = stored.payload;
        if (stored.origin.kind !== 'reminder' || !message.request)
            return;
        const { channel } = stored.origin;
        const { sessionId, request } = message;
        this.#await({ id, sessionId, requestId: request.id, channel, dueAt: stored.dueAt, message });
    }
    /** From now on `isWaiting` says the truth. */
    start() {
        this.#started = true;
        for (const { id, dueAt } of this.#byId.values())
            this.#due.set(id, dueAt);
    }
    stop() {
        this.#stopped = true;
        this.#due.stop();
    }
    #await(reminder) {
        this.#byId.set(reminder.id, reminder);
        if (this.#started)
            this.#due.set(reminder.id, reminder.dueAt);
    }
    #onDue(ids) {
        for (const id of ids) {
            const reminder = this.#byId.get(id);
            if (reminder)
                void this.#remind(reminder);
        }
    }
    async #remind(reminder) {
        const { isWaiting, tell, clock } = this.#options;
        const { id, sessionId, requestId, message, channel } = reminder;
        try {
            const waits = await isWaiting(sessionId, requestId);
            if (!this.#byId.has(id) || this.#stopped)
                return;
            // asked for in one turn, so that one of the two is there at any time
            if (waits)
                tell(message, id, channel);
            this.#drop(id);
        }
        catch (error) {
            this.#onFault(error);
            if (!this.#stopped)
                this.#due.set(id, clock.now() + RETRY_MS);
        }
    }
    #drop(id) {
        const { outbox, outlasts } = this.#options;
        this.#byId.delete(id);
        this.#due.delete(id);
        if (outlasts)
            this.#ask(outbox.remove(LANE, id));
    }
    #ask(asked) {
        asked.catch((error) => this.#onFault(error));
    }
    #onFault(error) {
        this.#options.logger.warn({ err: toError(error) }, 'a reminder could not be looked after; it is tried again');
    }
}
//# sourceMappingURL=reminders.js.map