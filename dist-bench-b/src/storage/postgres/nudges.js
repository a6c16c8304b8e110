import { createHash } from 'node:crypto';
import { statement } from './plan.js';
const PAUSE_MS = 5;
const NOTIFY = 'SELECT pg_notify($1, $2)';
const ASYNC = `SELECT set_config('synchronous_commit', 'off', true)`;
/** Of a schema, in a database that may have several. */
export const channelOf = (schema) => `session_gateway_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`;
/** @param me whose own words are not told */
export function hears(link, me, onTold) {
    link.client.on('notification', ({ payload = '' }) => {
        const [what, by] = payload.split(' ');
        if (by !== String(me))
            onTold(what);
    });
}
/** Tells the others, never inside of what is written: a commit that tells holds up all others of the database. */
export class Nudges {
    #me;
    #channel;
    #timer;
    constructor(me, schema) {
        this.#me = me;
        this.#channel = channelOf(schema);
    }
    /** There may be work. Once in a few milliseconds, however often it is said. */
    nudge(link) {
        this.#timer ??= setTimeout(() => {
            this.#timer = undefined;
            void this.tell(link, 'work');
        }, PAUSE_MS).unref();
    }
    /** Never rejects: who did not hear it finds out by looking. */
    async tell(link, what) {
        await link.run([statement(ASYNC), statement(NOTIFY, this.#channel, `${what} ${this.#me}`)]).catch(() => { });
    }
    stop() {
        clearTimeout(this.#timer);
        this.#timer = undefined;
    }
}
//# sourceMappingURL=nudges.js.map