import { onRollback } from '../transaction.js';
const MAX_KNOWN = 4_096;
/** Where the sessions stand that are written right now, each read once: nobody else writes to the database. */
export class KnownSessions {
    #find;
    #known = new Map();
    constructor(db) {
        this.#find = db.prepare(`SELECT key, reserved_seq AS reservedSeq, asleep IS NOT NULL AS sleeps,
         coalesce((SELECT max(seq) FROM events WHERE session = key), 0) AS lastSeq
       FROM sessions WHERE id = ?`);
        onRollback(db, () => this.#known.clear());
    }
    get(id) {
        const known = this.#known.get(id);
        if (known)
            return known;
        const found = this.#find.get(id);
        return found && { ...found, sleeps: found.sleeps === 1 };
    }
    /** It stands there now, in the transaction that is under way. */
    set(id, session) {
        this.#known.set(id, session);
        if (this.#known.size > MAX_KNOWN)
            this.forget(this.#known.keys().next().value);
    }
    forget(id) {
        this.#known.delete(id);
    }
}
//# sourceMappingURL=known-sessions.js.map