import { invalidField } from '../errors.js';
import { MAX_PAGE, PageBuilder } from '../lib/paging.js';
import { visible, visibleProfiles } from '../principal.js';
import { listJobs, placeOf } from './adapter.js';
/** So many are asked for and held at once: each has its prompt whole, and its request. */
const JOBS_AT_ONCE = 25;
/**
 * One page of jobs, newest first.
 * @param show what the page has of a job
 * @throws SG_ERR_VALIDATION on a cursor that is none of ours
 */
export async function jobPage(adapter, { limit = MAX_PAGE, cursor, status, profile }, principal, show) {
    const profiles = profilesOf(profile, principal);
    const page = new PageBuilder(limit);
    const asked = Math.min(limit + 1, JOBS_AT_ONCE);
    let last;
    for (let after = cursor === undefined ? undefined : decode(cursor);; after = placeOf(last)) {
        const filter = {
            limit: asked,
            ...(status !== undefined && { status: [status] }),
            ...(profiles && { profiles }),
            ...(after && { after }),
        };
        const found = await listJobs(adapter, filter);
        for (const record of found) {
            if (!page.add(show(record.info)))
                return { items: page.items, next: encode(last) };
            last = record;
        }
        if (!last || found.length < asked)
            return { items: page.items, next: undefined };
    }
}
function profilesOf(profile, principal) {
    if (profile !== undefined)
        return visible(principal, profile) ? [profile] : [];
    return visibleProfiles(principal);
}
function encode(record) {
    const { id, createdAt, position } = placeOf(record);
    return Buffer.from([createdAt, position ?? [], id].flat().join('.')).toString('base64url');
}
function decode(cursor) {
    const match = /^(\d{1,16})\.(?:(\d{1,16})\.)?([\w-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
    if (!match)
        throw invalidField('cursor', 'is not one that this gateway gave out.');
    const [, createdAt, position, id] = match;
    return { id: id, createdAt: Number(createdAt), ...(position !== undefined && { position: Number(position) }) };
}
//# sourceMappingURL=job-page.js.map