import { Listeners } from '../../lib/listeners.js';
import { notOpen } from '../sql/storage.js';
import { carriedFiles } from './carried.js';
import { PostgresDatabase } from './database.js';
import { Member } from './node.js';
/** A node that leaves is taken over before a claim is decided: more often than that nobody leaves at once. */
const MOST_TRIES = 5;
/** A schema as several processes share it. */
export class PostgresCluster {
    #place;
    #listeners = new Listeners((error) => process.emitWarning(error));
    #announced;
    #member;
    #database;
    constructor(place) {
        this.#place = place;
    }
    announce(node, leaseMs) {
        this.#announced = { node, leaseMs };
    }
    get isAnnounced() {
        return this.#announced !== undefined;
    }
    get n() {
        return this.#member?.n ?? 0;
    }
    get state() {
        return this.#member?.state ?? 'out';
    }
    nodes() {
        return this.#member?.nodes ?? [];
    }
    on(event, listener) {
        return this.#listeners.on(event, listener);
    }
    async drain() {
        if (!this.#member)
            throw notOpen(this.#place);
        await this.#member.drain();
    }
    async placeOfSession(id) {
        return placeOf(await this.call('cluster.placeOfSession', id));
    }
    async placeOfExecution(executionId) {
        return placeOf(await this.call('cluster.placeOfExecution', executionId));
    }
    async placeOfJob(id) {
        return placeOf(await this.call('cluster.placeOfJob', id));
    }
    async claim(id) {
        for (let tries = 1;; tries++) {
            const { place, hasLeft } = await this.call('cluster.claim', id);
            if (!hasLeft || tries === MOST_TRIES)
                return placeOf(place);
            await this.#member?.takeLeft();
        }
    }
    async release(ids) {
        if (ids.length > 0)
            await this.call('cluster.release', ids);
    }
    nudge() {
        this.#member?.nudge();
    }
    call = (name, ...args) => this.#database ? this.#database.call(name, ...args) : Promise.reject(notOpen(this.#place));
    carried = carriedFiles(this.call);
    /** Joins. @param direct the connection that nothing may come between @throws StorageError */
    async open(options, direct) {
        const { node, leaseMs } = this.#announced;
        const member = await Member.join(direct, node, leaseMs, this.#listeners, {
            onTaken: ({ sessionIds }) => this.#database?.forget(sessionIds),
            onLost: () => this.#database?.fence(),
        });
        this.#member = member;
        try {
            const database = await PostgresDatabase.open(options, { n: member.n, isOneOfMany: true }, () => member.lose());
            this.#database = database;
            return {
                isOneOfMany: true,
                call: database.call,
                atTurnsEnd: database.atTurnsEnd,
                close: async () => {
                    member.stop();
                    await database.close();
                    await this.#leave(member);
                },
            };
        }
        catch (error) {
            await this.#leave(member);
            throw error;
        }
    }
    async #leave(member) {
        await member.leave();
        this.#member = undefined;
        this.#database = undefined;
    }
}
function placeOf(row) {
    if (!row)
        return undefined;
    const { id, profile, home, ended, ...owner } = row;
    return {
        ...{ id, profile },
        ...(owner.n !== null && { owner: owner }),
        ...(home !== null && { home }),
        ...(ended !== null && { ended: ended }),
    };
}
//# sourceMappingURL=directory.js.map