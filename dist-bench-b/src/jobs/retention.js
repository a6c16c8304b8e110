import { toError } from '../errors.js';
import { SortedList } from '../lib/sorted-list.js';
import { listJobs, placeOf } from './adapter.js';
import { TERMINAL_STATUSES } from './job.js';
import { unlessGone } from './sessions.js';
/** Jobs that are read, or forgotten, at once. */
const BATCH = 500;
/** Removes terminal jobs when they are old enough, and what is kept about them elsewhere. */
export class Retention {
    #options;
    /** Of an adapter that has no `ended`. */
    #finished = new SortedList((a, b) => a.finishedAt - b.finishedAt || (a.id < b.id ? -1 : +(a.id > b.id)));
    #timer;
    #stopped = false;
    constructor(options) {
        this.#options = options;
        this.#schedule();
    }
    /** Takes up the jobs that ended in an earlier process. Call it before any can end in this one. */
    async takeUp() {
        const { adapter } = this.#options;
        if (adapter.ended)
            return;
        const filter = { status: TERMINAL_STATUSES, limit: BATCH };
        for (;;) {
            const records = await listJobs(adapter, filter);
            for (const { info } of records)
                this.onTerminal(info);
            if (records.length < BATCH)
                return;
            filter.after = placeOf(records.at(-1));
        }
    }
    onTerminal(job) {
        if (!this.#options.adapter.ended)
            this.#finished.add(finished(job, this.#options.clock.now()));
    }
    stop() {
        this.#stopped = true;
        this.#timer?.cancel();
    }
    #schedule() {
        if (this.#stopped)
            return;
        this.#timer = this.#options.clock.after(this.#options.sweepIntervalMs, () => void this.#sweep());
    }
    async #sweep() {
        try {
            if (this.#options.adapter.ended)
                await this.#removeEnded();
            else
                await this.#prune();
        }
        catch (error) {
            this.#options.logger.error({ err: toError(error) }, 'old jobs could not be removed');
        }
        this.#schedule();
    }
    /** @throws when a session, or a job, could not be removed; both are tried again at the next sweep */
    async #removeEnded() {
        const { adapter, maxAgeMs, clock } = this.#options;
        for (;;) {
            const old = await adapter.ended(maxAgeMs, BATCH);
            await settled(old.map(async (job) => {
                await this.#forget(finished(job, clock.now()));
                await adapter.remove(job.id);
            }));
            if (old.length < BATCH)
                return;
        }
    }
    async #prune() {
        const { adapter, clock, maxAgeMs } = this.#options;
        const limit = clock.now() - maxAgeMs;
        for (let old = this.#takeOld(limit); old.length > 0; old = this.#takeOld(limit))
            // one whose session could not be removed is tried again at the next sweep
            await settled(old.map((job) => this.#forget(job).catch((error) => {
                this.#finished.add(job);
                throw error;
            })));
        await adapter.prune(maxAgeMs);
    }
    #takeOld(limit) {
        const old = [];
        for (let job = this.#finished.first; job && job.finishedAt <= limit && old.length < BATCH; job = this.#finished.first) {
            this.#finished.delete(job);
            old.push(job);
        }
        return old;
    }
    /** The sessions first: they can only be found through their jobs. */
    async #forget({ id, sessions }) {
        // a session that is still there has ended with its run
        await Promise.all(sessions.map((session) => this.#options.sessions.close(session).catch(unlessGone)));
        this.#options.onForgotten(id);
    }
}
const finished = ({ id, finishedAt, sessionId, notes }, now) => ({
    id,
    finishedAt: finishedAt ?? now,
    sessions: [...(notes?.sessions ?? []), ...(sessionId === undefined ? [] : [sessionId])],
});
/** Waits for all. @throws what the first of those that failed threw */
async function settled(work) {
    const failed = (await Promise.allSettled(work)).find((outcome) => outcome.status === 'rejected');
    if (failed)
        throw failed.reason;
}
//# sourceMappingURL=retention.js.map