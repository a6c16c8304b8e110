import { GatewayError, toError } from '../errors.js';
import { listJobs } from './adapter.js';
import { ACTIVE_STATUSES, BEGUN_STATUSES } from './job.js';
import { unlessGone } from './sessions.js';
/**
 * Takes up what an earlier process left: waiting jobs wait on, runs whose session waits go on, every other run has failed. Sessions of
 * jobs that are over, or at another attempt, are closed before anything wakes them.
 */
export async function recover({ adapter, store, attempts, sessions, logger, graceMs, shared, }) {
    const records = await (shared
        ? underWay(adapter, attempts, shared.isTaken)
        : listJobs(adapter, { status: (await store.adoptQueued()) ? BEGUN_STATUSES : ACTIVE_STATUSES }));
    // one whose end was written and that of its job was not
    const begun = records.filter(({ info }) => info.status !== 'queued' && info.sessionId !== undefined);
    await Promise.all(begun.map(({ info }) => sessions.get(info.sessionId)));
    // what sessions have told by now has then reached the attempts
    await new Promise(setImmediate);
    if (attempts.draining)
        throw new GatewayError('SG_ERR_SHUTTING_DOWN');
    for (const record of records)
        store.adopt(record);
    for (const record of records)
        if (record.info.status !== 'queued')
            attempts.takeUp(record, graceMs);
    for (const session of sessions.unended()) {
        if (session.jobId === undefined || attempts.follows(session.id) || !(await adapter.get(session.jobId)))
            continue;
        // one that the adapter does not know may have been forgotten by it: its session goes on like any other
        await sessions
            .close(session.id)
            .catch(unlessGone)
            .catch((error) => logger.error({ err: toError(error), sessionId: session.id }, 'a session could not be closed'));
    }
    attempts.tookUpAll();
}
/** Jobs that are this node's and that nobody goes on with yet. */
async function underWay(adapter, attempts, isTaken = (_id) => true) {
    const records = [];
    for await (const page of adapter.owned())
        records.push(...page.filter(({ info: { id } }) => isTaken(id) && !attempts.has(id)));
    return records;
}
//# sourceMappingURL=recovery.js.map