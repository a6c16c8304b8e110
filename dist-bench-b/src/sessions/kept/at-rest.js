import { toError } from '../../errors.js';
import { isUnreadable } from '../../storage/storage.js';
import { wakesAt } from './asleep.js';
import { DueSleepers } from './due-sleepers.js';
import { isTerminal } from './journal.js';
/** Sessions that are looked at, or removed, at once. */
const BATCH = 200;
/** Until those are looked at again that could not be removed, or that somebody has looked at. */
const AGAIN_MS = 30_000;
/** Until it is looked for those that nodes have left which are gone. */
const LOOK_MS = 5 * 60_000;
/**
 * Sessions at rest that nobody asks for: the journal has them, and the table does not. Whoever asks for one by its id, or for an execution
 * of it, has it entered there for a while; so has one that sleeps when its time comes.
 */
export class AtRest {
    /** What the journal gives of them. */
    journal;
    #parts;
    #due;
    #lookUps = new Map();
    /** Sessions that are on their way out, and were never said to be there. */
    #refused = new Set();
    /** Where several processes have sessions, none of them counts all. */
    #counts = { closed: 0, failed: 0, idle: 0, parked: 0 };
    #sweep;
    #stopped = false;
    constructor(journal, parts) {
        this.journal = journal;
        this.#parts = parts;
        this.#due = new DueSleepers(journal, { ...parts, find: (id) => this.find(id) });
        const { table, executions, onLeft } = parts;
        table.onDropped = (info) => {
            const { id, lastActivityAt } = info;
            // whoever asks next finds them by the journal
            executions.forget(id);
            onLeft(id);
            this.#count(info, 1);
            if (isTerminal(info))
                this.#expect(lastActivityAt);
            else
                this.#due.expect(wakesAt(info));
        };
    }
    #count({ status }, by) {
        if (!this.#parts.sharing)
            this.#counts[status] += by;
    }
    /** How many are in the journal alone, by their status; none where several processes have sessions. */
    get counts() {
        return this.#counts;
    }
    /** Whether there may be some in the journal alone. */
    get hasSome() {
        return this.#parts.sharing !== undefined || Object.values(this.#counts).some((count) => count > 0);
    }
    /**
     * Reads what is to be known of those of an earlier process.
     * @returns what is to be done once the others are in the table
     * @throws what the journal throws
     */
    async open() {
        const { table, sharing, clock } = this.#parts;
        if (sharing) {
            sharing.storage.on('nodes', () => this.lookForDue());
            return () => {
                if (this.#parts.sessionRetentionMs !== undefined)
                    this.#sweepAt(clock.now());
                this.#due.look();
            };
        }
        const { lastOrder, ...counts } = await this.journal.restTotals();
        Object.assign(this.#counts, counts);
        const [first] = await this.journal.endedFirst(1);
        return () => {
            table.goOnAfter(lastOrder);
            if (first)
                this.#expect(first.endedAt);
            if (counts.parked > 0)
                this.#due.look();
        };
    }
    /** What slept at another node may be this one's to wake. */
    lookForDue() {
        this.#due.look();
    }
    /** The entry of one at rest, which the table has from now on. @throws SG_ERR_STORE_UNAVAILABLE */
    async find(id, patience) {
        if (!this.hasSome)
            return undefined;
        const known = this.#lookUps.get(id);
        if (known)
            return known;
        const lookUp = this.#lookUp(id, patience).finally(() => this.#lookUps.delete(id));
        this.#lookUps.set(id, lookUp);
        return lookUp;
    }
    async #lookUp(id, patience) {
        const { keeping, table, sharing, onMissed, takeUp } = this.#parts;
        const left = await keeping.get(id, patience).catch((error) => {
            // reported; it stays in the journal, as one does that cannot be read at the start
            if (isUnreadable(error.cause))
                return undefined;
            throw error;
        });
        const entry = table.get(id);
        if (entry || !left || this.#refused.has(id))
            return entry;
        const { info } = left.state;
        if (!isTerminal(info) && sharing) {
            await onMissed(left);
            return table.get(id);
        }
        if (left.news?.some(({ type }) => type === 'removal'))
            return undefined;
        if (isTerminal(info))
            this.enter(left);
        else if (left.sleeps)
            await takeUp(left);
        else
            return undefined;
        this.#count(info, -1);
        return table.get(id);
    }
    /** Lists one that has ended in the table, until nobody looks at it any more. */
    enter(left) {
        const { table, enter } = this.#parts;
        enter(left);
        table.unloadLater(left.id);
    }
    /** The session in the journal that has had an execution. @throws SG_ERR_STORE_UNAVAILABLE */
    async sessionOf(executionId) {
        return this.hasSome ? this.#parts.keeping.asked(() => this.journal.sessionOf(executionId)) : undefined;
    }
    /** Whether one that sleeps goes on from that session of an agent's own. @throws SG_ERR_STORE_UNAVAILABLE */
    async continues(sdkSessionId) {
        return this.hasSome && this.#parts.keeping.asked(() => this.journal.continues(sdkSessionId));
    }
    /** Some of them; where several processes have sessions, of all. @throws SG_ERR_STORE_UNAVAILABLE */
    async read(query) {
        const { sessions, next } = await this.#parts.keeping.readListed(query, this.#parts.sharing !== undefined);
        return { sessions: sessions.filter(({ id }) => !this.#refused.has(id)), next };
    }
    /** Hides one that was refused until it is gone from the journal, too. */
    hide(id) {
        this.#refused.add(id);
    }
    unhide(id) {
        this.#refused.delete(id);
    }
    stop() {
        this.#stopped = true;
        this.#sweep?.timer.cancel();
        this.#due.stop();
    }
    // ── those whose time is over ──────────────────────────────────────────────────────────────────────────────────────────────
    /** One that ended then is in the journal alone. */
    #expect(endedAt) {
        const { sessionRetentionMs } = this.#parts;
        if (sessionRetentionMs !== undefined)
            this.#sweepAt(endedAt + sessionRetentionMs);
    }
    #sweepAt(at, by = 'after') {
        const { clock, retryAfter } = this.#parts;
        if (this.#stopped || (this.#sweep && this.#sweep.at <= at))
            return;
        this.#sweep?.timer.cancel();
        const run = () => {
            this.#sweep = undefined;
            void this.#removeOld();
        };
        const delayMs = at - clock.now();
        const timer = by === 'after' ? clock.after(delayMs, run) : retryAfter(delayMs, run);
        this.#sweep = { at, timer };
    }
    async #removeOld() {
        const { clock, logger, table, sessionRetentionMs = 0, forget } = this.#parts;
        const isOld = ({ endedAt }) => endedAt + sessionRetentionMs <= clock.now();
        try {
            for (;;) {
                const first = await this.journal.endedFirst(BATCH);
                // one that is in the table goes from there
                const old = first.filter((one) => isOld(one) && !table.get(one.id));
                const found = await Promise.all(old.map(async ({ id }) => (await this.#isMine(id)) && this.find(id)));
                const entries = found.filter((entry) => entry !== undefined && entry !== false);
                await Promise.all(entries.map(({ id }) => forget(id)));
                if (entries.length > 0 && first.length === BATCH)
                    continue;
                const next = first.find((one) => !isOld(one));
                if (this.#parts.sharing)
                    this.#sweepAt(clock.now() + LOOK_MS);
                if (next)
                    this.#expect(next.endedAt);
                else if (first.length > entries.length)
                    this.#sweepAt(clock.now() + AGAIN_MS);
                return;
            }
        }
        catch (error) {
            logger.error({ err: toError(error) }, 'sessions that have ended could not be removed; it is tried again');
            this.#sweepAt(clock.now() + AGAIN_MS, 'retryAfter');
        }
    }
    /** Those of nodes that are gone are one node's to remove. */
    async #isMine(id) {
        const { sharing } = this.#parts;
        return !sharing || (await sharing.storage.claim(id))?.owner?.n === sharing.storage.n;
    }
}
//# sourceMappingURL=at-rest.js.map