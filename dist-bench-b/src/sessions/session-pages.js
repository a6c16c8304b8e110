import { decodeOrder, MAX_PAGE, PageTurns, pageOf } from '../lib/paging.js';
import { UNLIMITED, visibleProfiles } from '../principal.js';
import { orderOf } from './kept/journal.js';
import { infoOf } from './session-table.js';
/**
 * Pages of all sessions: those of the table as they are now, and among them those that are in the journal alone, as they were last written:
 * they are at rest, or another process's.
 */
export class SessionPages {
    #table;
    #atRest;
    #isShared;
    #turns = new PageTurns();
    /** @param isShared whether the journal is asked for all sessions: other processes have some */
    constructor(table, atRest, isShared) {
        this.#table = table;
        this.#atRest = atRest;
        this.#isShared = isShared;
    }
    /**
     * One page of the sessions that a caller may see, newest first.
     * @throws SG_ERR_VALIDATION on a cursor that is none of ours · SG_ERR_STORE_UNAVAILABLE
     */
    async page(query, principal) {
        const asked = journalQuery(query, principal, this.#isShared);
        await this.#turns.next();
        if (!asked || !this.#atRest?.hasSome)
            return this.#pageOf(this.#rowsOf(query, principal, []), query);
        const journal = this.#atRest;
        // what left the table while the journal is asked would be in neither
        return this.#table.holding(async () => {
            const read = [];
            for (let next = asked.before;;) {
                const found = await journal.read({ ...asked, before: next });
                read.push(...found.sessions);
                next = found.next;
                await this.#turns.next();
                const until = next ?? Number.NEGATIVE_INFINITY;
                const page = this.#pageOf(this.#rowsOf(query, principal, read, until), query);
                if (page.next !== undefined || next === undefined)
                    return page;
            }
        });
    }
    /** All of them, newest first. */
    async all() {
        const all = [];
        for (let cursor;;) {
            const { items, next } = await this.page({ limit: MAX_PAGE, ...(cursor !== undefined && { cursor }) }, UNLIMITED);
            all.push(...items);
            if (next === undefined)
                return all;
            cursor = next;
        }
    }
    #pageOf(rows, query) {
        return pageOf(rows, ({ order }) => order, (row) => row.info(), query);
    }
    /** Newest first; looked for only as far as somebody asks. @param until where `read` ends, and more may follow */
    *#rowsOf(query, principal, read, until = Number.NEGATIVE_INFINITY) {
        const entries = this.#table.matching(query, principal);
        let entry = entries.next().value;
        for (const session of [...read.filter(({ id }) => !this.#table.get(id)), undefined]) {
            const order = session ? orderOf(session) : until;
            for (; entry && entry.order > order; entry = entries.next().value) {
                const shown = entry;
                yield { order: shown.order, info: () => infoOf(shown) };
            }
            if (session)
                yield { order, info: () => ({ ...session.state.info, lastSeq: session.lastSeq }) };
        }
    }
}
const AT_REST = new Set(['closed', 'failed', 'idle', 'parked']);
/** Undefined: nothing that is asked for is in the journal alone. @throws SG_ERR_VALIDATION on a cursor that is none of ours */
function journalQuery(query, principal, ofAll) {
    const { status, engine, profile, cursor, limit = MAX_PAGE } = query;
    const before = cursor === undefined ? undefined : decodeOrder(cursor);
    if (!ofAll && status !== undefined && !AT_REST.has(status))
        return undefined;
    const seen = visibleProfiles(principal);
    const profiles = profile === undefined ? seen : [profile].filter((name) => !seen || seen.includes(name));
    if (profiles?.length === 0)
        return undefined;
    // one more than the page has room for: whether there is a page after it
    return { status, engine, profiles, before, limit: limit + 1 };
}
//# sourceMappingURL=session-pages.js.map