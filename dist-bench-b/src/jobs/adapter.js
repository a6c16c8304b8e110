/** What a record says is expected of the job. */
export const expectedOf = ({ info: { status }, rev }) => rev === undefined ? status : { status, rev };
/** @param rev of an adapter that counts changes */
export function isAsExpected(expected, status, rev) {
    if (expected === undefined)
        return true;
    if (typeof expected === 'string')
        return status === expected;
    return status === expected.status && (rev === undefined || rev === expected.rev);
}
export const placeOf = ({ info: { id, createdAt }, position }) => ({
    id,
    createdAt,
    ...(position !== undefined && { position }),
});
/**
 * What a claim changes about a job. It is begun with it where taking that back needs to know nothing of an attempt before.
 * @param index of the job among those that are claimed
 */
export function claimPatch(job, begin, index) {
    const sessionId = begin?.sessionIds[index];
    const begins = sessionId !== undefined && job.startedAt === undefined;
    return { status: 'running', nextRunAt: undefined, ...(begins && { startedAt: begin.at, sessionId }) };
}
/**
 * What a filter selects, of records in any order; for adapters that have nothing better. By `position` when they have one, else by
 * `createdAt`; records of the same millisecond keep their order.
 */
export function selectJobs(records, filter = {}) {
    const { after, limit = records.length } = filter;
    const newestFirst = [...records].sort((a, b) => timeOf(b) - timeOf(a));
    const cursor = after ? newestFirst.findIndex(({ info }) => info.id === after.id) : -1;
    return newestFirst
        .slice(cursor + 1)
        .filter((record) => isAskedFor(record, filter) && (!after || cursor >= 0 || isBehind(record, after)))
        .slice(0, limit);
}
/** What an adapter lists, in its order; one that does not select is put right. */
export async function listJobs(adapter, filter) {
    const records = await adapter.list(filter);
    const { after, limit = records.length } = filter;
    const isSelected = records.length <= limit && records.every((record) => isAskedFor(record, filter) && record.info.id !== after?.id);
    return isSelected ? records : selectJobs(records, filter);
}
const isAskedFor = ({ info }, { status, profiles }) => (status === undefined || status.includes(info.status)) && (profiles === undefined || profiles.includes(info.profile));
const timeOf = ({ info, position }) => position ?? info.createdAt;
const isBehind = ({ info, position }, after) => position !== undefined && after.position !== undefined ? position < after.position : info.createdAt <= after.createdAt;
//# sourceMappingURL=adapter.js.map