import { GatewayError, invalidField, toError } from '../errors.js';
import { DueTimes } from '../lib/due-times.js';
/** How soon a watchdog fires again when a result could not be stored. */
const RETRY_MS = 5_000;
const TIMEOUT = { status: 'failed', reason: 'timeout', error: 'No result was delivered in time.' };
/** Its result comes to a path that holds it. @throws SG_ERR_VALIDATION */
function assertInUrl(executionId, maxLength) {
    const refuse = (message) => invalidField('executionId', message);
    if (typeof executionId !== 'string' || executionId === '')
        throw refuse('must be a string that is not empty.');
    if (executionId.length > maxLength)
        throw refuse(`must have at most ${maxLength} characters, to fit into a path.`);
    // clients resolve both, in every spelling, and half a character has none
    if (executionId === '.' || executionId === '..' || /\p{Surrogate}/u.test(executionId))
        throw refuse('cannot stand in a path.');
}
/**
 * Every deferred execution, by id: which session waits for it, and whether it was settled. The first result wins, a caller's or the
 * watchdog's; settled ids are remembered for as long as their session exists.
 */
export class Executions {
    #options;
    #sessions;
    #lookUp;
    #entries = new Map();
    /** Ids by session, for when it is forgotten; most have one. */
    #bySession = new Map();
    /** When watchdogs fire: one timer, however many sleep. */
    #due;
    constructor(options) {
        this.#options = options;
        this.#due = new DueTimes(options.clock, (ids) => {
            for (const executionId of ids)
                this.#timeOut(executionId);
        });
    }
    /** Says whose sessions the results are for; nothing is submitted before. @param lookUp absent: all executions are known */
    serve(sessions, lookUp) {
        this.#sessions = sessions;
        this.#lookUp = lookUp;
    }
    /** The session that an execution belongs to, settled or not. */
    async sessionOf(executionId) {
        const known = this.#entries.get(executionId);
        return (known ?? (this.#lookUp && (await this.#lookedUp(executionId))))?.sessionId;
    }
    /**
     * Makes an id known and arms its watchdog.
     * @param deadline epoch milliseconds; absent: waits without limit
     * @returns false when this session has the id already, which changes nothing
     * @throws SG_ERR_EXECUTION_EXISTS when another session has it, SG_ERR_VALIDATION when no URL can carry it
     */
    defer(sessionId, executionId, deadline) {
        assertInUrl(executionId, this.#options.maxIdLength);
        return this.register(sessionId, executionId, deadline);
    }
    /** The same for one that was deferred before. */
    register(sessionId, executionId, deadline) {
        const known = this.#entries.get(executionId);
        if (known?.sessionId === sessionId)
            return false;
        if (known)
            throw new GatewayError('SG_ERR_EXECUTION_EXISTS');
        const entry = { sessionId, deadline, settled: false, settling: undefined };
        this.#entries.set(executionId, entry);
        const ids = this.#bySession.get(sessionId);
        if (ids === undefined)
            this.#bySession.set(sessionId, executionId);
        else if (typeof ids === 'string')
            this.#bySession.set(sessionId, new Set([ids, executionId]));
        else
            ids.add(executionId);
        this.#arm(executionId, entry);
        return true;
    }
    /** Makes an id known that was settled before this process began. */
    remember(sessionId, executionId) {
        if (!this.register(sessionId, executionId, undefined))
            return;
        this.#entries.get(executionId).settled = true;
    }
    /**
     * Settles an execution; a duplicate, or one that came after the watchdog, is not applied.
     * @throws SG_ERR_EXECUTION_NOT_FOUND; what the store throws, and then nothing was settled
     */
    async submit(executionId, result) {
        for (;;) {
            const entry = this.#entries.get(executionId) ?? (this.#lookUp && (await this.#lookedUp(executionId)));
            if (!entry)
                throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND');
            const { sessionId, settling } = entry;
            if (entry.settled) {
                await this.#sessions.hasten(sessionId);
                return { applied: false, sessionId };
            }
            if (!settling) {
                return { applied: await this.#settle(executionId, entry, result), sessionId };
            }
            // whoever comes second is told "not applied" only once the first result is safe, and else takes its place
            await settling;
        }
    }
    async #lookedUp(executionId) {
        const sessionId = await this.#lookUp?.(executionId);
        if (sessionId !== undefined && !this.#entries.has(executionId))
            this.remember(sessionId, executionId);
        return this.#entries.get(executionId);
    }
    async #settle(executionId, entry, result) {
        const sessions = this.#sessions;
        let stored = () => { };
        // both before the engine goes on: it may settle something itself
        entry.settling = new Promise((resolve) => {
            stored = resolve;
        });
        this.#due.delete(executionId);
        try {
            const applied = await sessions.deliver(entry.sessionId, executionId, result);
            entry.settled = true;
            stored();
            if (!applied && this.#entries.get(executionId) !== entry)
                throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND');
            if (applied)
                await sessions.wake(entry.sessionId);
            return applied;
        }
        catch (error) {
            if (this.#entries.get(executionId) !== entry)
                throw new GatewayError('SG_ERR_EXECUTION_NOT_FOUND');
            this.#arm(executionId, entry, RETRY_MS);
            throw error;
        }
        finally {
            entry.settling = undefined;
            stored();
        }
    }
    /** Takes an execution that waits as settled, without a result of its own; false when it is, or is about to be. */
    claim(executionId) {
        const entry = this.#entries.get(executionId);
        if (!entry || entry.settled || entry.settling)
            return false;
        entry.settled = true;
        this.#due.delete(executionId);
        return true;
    }
    /** Takes a claim back. */
    unclaim(executionId) {
        const entry = this.#entries.get(executionId);
        if (!entry)
            return;
        entry.settled = false;
        this.#arm(executionId, entry);
    }
    /** Makes an id unknown here that turned out to be a session's of another node: results are passed on to it. */
    disown(executionId) {
        const entry = this.#entries.get(executionId);
        if (!entry)
            return;
        this.#due.delete(executionId);
        this.#entries.delete(executionId);
        const ids = this.#bySession.get(entry.sessionId);
        if (ids === executionId)
            this.#bySession.delete(entry.sessionId);
        else if (ids instanceof Set)
            ids.delete(executionId);
    }
    /** Forgets a session's executions: a late result finds nothing. */
    forget(sessionId) {
        const ids = this.#bySession.get(sessionId) ?? [];
        for (const executionId of typeof ids === 'string' ? [ids] : ids) {
            this.#due.delete(executionId);
            this.#entries.delete(executionId);
        }
        this.#bySession.delete(sessionId);
    }
    /** Stops the watchdogs; what is parked keeps its deadlines in the store. */
    close() {
        this.#due.stop();
    }
    #arm(executionId, entry, atLeastMs = 0) {
        if (entry.deadline === undefined)
            return;
        this.#due.set(executionId, Math.max(entry.deadline, this.#options.clock.now() + atLeastMs));
    }
    #timeOut(executionId) {
        this.submit(executionId, TIMEOUT).catch((error) => this.#options.logger.error({ err: toError(error), executionId }, 'a timeout could not be delivered'));
    }
}
//# sourceMappingURL=executions.js.map