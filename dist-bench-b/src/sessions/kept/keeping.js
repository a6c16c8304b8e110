import { GatewayError, toError } from '../../errors.js';
import { KeyedLock } from '../../lib/keyed-lock.js';
import { overdue, PATIENCE_MS, patiently, persistently, tooLate, unavailable, } from '../../lib/patience.js';
import { within } from '../../lib/within.js';
import { newsOf } from './news.js';
/** The journal as a registry uses it: its failures are told, to the operator with the cause, to the caller as "come again". */
export class Keeping {
    journal;
    retryAfter;
    backlog = { bytes: 0 };
    oneWrite;
    atTurnsEnd;
    #onError;
    #logger;
    #clock;
    #lock = new KeyedLock();
    /** How much of each session was refused since the storage did not answer, and is not taken back yet. */
    #overdue = new Map();
    /** Sessions whose last write failed. */
    #unwritable = new Set();
    constructor(journal, options) {
        this.journal = journal;
        this.retryAfter = options.retryAfter;
        this.oneWrite = options.oneWrite ?? false;
        this.atTurnsEnd = options.atTurnsEnd ?? queueMicrotask;
        this.#onError = options.onError;
        this.#logger = options.logger;
        this.#clock = options.clock;
    }
    /** Whether it has every session, from its first event on. */
    get hasAll() {
        return !this.journal.onlyAsleep;
    }
    /** Whether what happens to sessions can be written down. */
    get isWritable() {
        return this.#unwritable.size === 0;
    }
    onFault = (sessionId, error) => {
        if (error === undefined) {
            this.#unwritable.delete(sessionId);
            return;
        }
        this.#unwritable.add(sessionId);
        this.#logger.error({ sessionId, err: toError(error) }, 'a session cannot be written down; it is tried again');
    };
    /** What the journal gives of sessions at rest; undefined: they are in memory. */
    get atRest() {
        return this.journal.atRest && this.journal;
    }
    /** Every session that can be read, those at rest only when they are in memory; the others are reported. @throws what the journal throws */
    list() {
        const onUnreadable = (error) => this.report(error, { phase: 'adopt' });
        return this.atRest?.awake(onUnreadable) ?? this.journal.list(onUnreadable);
    }
    /** Some at rest, or of all processes' sessions. @throws SG_ERR_STORE_UNAVAILABLE */
    readListed(query, ofAll) {
        const onUnreadable = (error) => this.report(error, { phase: 'adopt' });
        const { journal } = this;
        const ask = () => ofAll ? journal.listed(query, onUnreadable) : journal.atRest(query, onUnreadable);
        return this.asked(ask);
    }
    /** What the journal says to a question of no one session. @throws SG_ERR_STORE_UNAVAILABLE */
    asked(ask) {
        return this.#guarded(undefined, () => within(PATIENCE_MS, ask(), { clock: this.#clock, onLate: tooLate }));
    }
    /** @throws SG_ERR_STORE_UNAVAILABLE */
    get(id, patience) {
        return this.#askedOf(id, () => this.journal.get(id), patience);
    }
    /** False: there is no such session. @throws SG_ERR_STORE_UNAVAILABLE, and then nothing of it is kept */
    deposit(id, news, keys, patience) {
        const deposited = async (isRefused) => {
            const isThere = await this.journal.deposit(id, news, keys);
            if (isThere && isRefused())
                await this.#takeBack(() => this.journal.write({ id, taken: news.map(({ key }) => key) }));
            return isThere;
        };
        return this.#askedOf(id, deposited, patience);
    }
    /** Writes a session that sleeps, into a journal that has no other. @throws what the journal throws · SG_ERR_STORE_UNAVAILABLE */
    write(write) {
        return this.#inTurn(write.id, () => this.journal.write(write));
    }
    /** The same for one that goes on when it cannot be. @throws as `write`, and then nothing of it is kept */
    park(write, session) {
        const { id } = write;
        return this.#inTurn(id, async (isRefused) => {
            await this.journal.write(write);
            if (isRefused() && !session.midTurn)
                await this.#takeBack(() => this.journal.remove(id));
        });
    }
    /**
     * Removes a session for somebody who asked for it. Resolves once that is decided, durably: then it is done, in the write that comes
     * next, whatever becomes of this process.
     * @param ending what is to be told of its end
     * @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then
     */
    async remove(id, session, { reason, ending }) {
        const news = newsOf({ type: 'removal', reason });
        if (session && this.hasAll)
            await this.#guarded(id, () => patiently(this.#clock, (isRefused) => new Promise((onDecided, reject) => {
                session.erase({ ending, decision: { news, isRefused, onDecided } }).then(onDecided, reject);
            })));
        else if (!session || session.midTurn) {
            if (await this.deposit(id, [news]))
                void this.#takeBack(() => this.journal.remove(id));
        }
        if (session)
            session.midTurn = undefined;
        this.#unwritable.delete(id);
    }
    /** Removes what is kept of a session that nobody asked about. @throws SG_ERR_STORE_UNAVAILABLE */
    async erase(id, session) {
        await this.#askedOf(id, async () => {
            if (session && this.hasAll)
                await session.erase();
            else if (!session || session.midTurn)
                await this.journal.remove(id);
        });
        if (session)
            session.midTurn = undefined;
        this.#unwritable.delete(id);
    }
    async close() {
        await this.journal.close?.();
    }
    report(error, context) {
        this.#logger.error({ err: toError(error), ...context }, 'parking: something failed');
        try {
            this.#onError?.(toError(error), context);
        }
        catch (thrown) {
            this.#logger.error({ err: toError(thrown) }, 'parking.onError threw');
        }
    }
    #takeBack(write) {
        return persistently(write, { logger: this.#logger, retryAfter: this.retryAfter });
    }
    /**
     * One after the other: until what was refused is taken back nothing more is asked about the session, so that nobody goes on from it.
     */
    async #inTurn(id, work, patience) {
        if (this.#overdue.has(id))
            throw overdue();
        const count = (by) => {
            const left = (this.#overdue.get(id) ?? 0) + by;
            if (left > 0)
                this.#overdue.set(id, left);
            else
                this.#overdue.delete(id);
        };
        const inTurn = (isRefused) => this.#lock.run(id, () => {
            if (isRefused())
                throw overdue();
            return work(isRefused);
        });
        const onLate = (working) => {
            count(1);
            const done = () => count(-1);
            working.then(done, done);
        };
        return patiently(this.#clock, inTurn, { onLate, patience });
    }
    #askedOf(id, work, patience) {
        return this.#guarded(id, () => this.#inTurn(id, work, patience));
    }
    async #guarded(sessionId, work) {
        try {
            return await work();
        }
        catch (error) {
            this.report(error, { ...(sessionId !== undefined && { sessionId }), phase: 'store' });
            throw error instanceof GatewayError && error.code === 'SG_ERR_STORE_UNAVAILABLE' ? error : unavailable(error);
        }
    }
}
//# sourceMappingURL=keeping.js.map