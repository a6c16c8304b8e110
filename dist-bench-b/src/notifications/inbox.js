import { ASK_USER_QUESTION } from '../../schemas/permissions.js';
import { Listeners } from '../lib/listeners.js';
import { nextOf } from '../lib/node-numbers.js';
import { decodeOrder, encodeOrder, PageBuilder } from '../lib/paging.js';
import { SortedList } from '../lib/sorted-list.js';
import { visible, visibleProfiles } from '../principal.js';
const KINDS = ['permission', 'question'];
/** Stands for all profiles; no profile has such a name. */
const ALL = '\0';
/**
 * What waits for a person, over all sessions: kept as requests are made and settled, so that a page costs as much as it holds, however
 * many sessions there are.
 */
export class Inbox {
    /** `changed`: something of this profile came or went; `elsewhere`: at another node. */
    listeners;
    #find;
    #bySession = new Map();
    #byProfile = new Map();
    /** Which of several nodes this is. */
    #node;
    /** What waits at other nodes, as they have told it. */
    #elsewhere = new Map();
    #lastOrder = 0;
    /** @param parts `node`: which of several this is; absent: it is the only one */
    constructor({ find, logger, node }) {
        this.#find = find;
        this.#node = node;
        this.listeners = new Listeners((error) => logger.error({ err: error }, 'a follower of the inbox failed'));
    }
    // ── what sessions tell ────────────────────────────────────────────────────────────────────────────────────────────────────
    nextOrder(now) {
        this.#lastOrder = this.#node ? nextOf(this.#node(), this.#lastOrder, now) : Math.max(this.#lastOrder + 1, now);
        return this.#lastOrder;
    }
    onWaiting({ sessionId, profile, request, place }) {
        const known = this.#bySession.get(sessionId) ?? new Map();
        if (known.has(request.id))
            return;
        const kind = request.toolName === ASK_USER_QUESTION ? 'question' : 'permission';
        const entry = { sessionId, requestId: request.id, kind, profile, ...place };
        this.#lastOrder = Math.max(this.#lastOrder, place.order);
        known.set(request.id, entry);
        this.#bySession.set(sessionId, known);
        for (const name of [profile, ALL])
            this.#listsOf(name)[kind].add(entry);
        this.listeners.emit('changed', { profile });
    }
    onResolved(sessionId, requestId) {
        const known = this.#bySession.get(sessionId);
        const entry = known?.get(requestId);
        if (!known || !entry)
            return;
        known.delete(requestId);
        if (known.size === 0)
            this.#bySession.delete(sessionId);
        const { profile, kind } = entry;
        for (const name of [profile, ALL])
            this.#listsOf(name)[kind].delete(entry);
        if (KINDS.every((kind) => this.#listsOf(profile)[kind].length === 0))
            this.#byProfile.delete(profile);
        this.listeners.emit('changed', { profile });
    }
    onRemoved(sessionId) {
        for (const requestId of [...(this.#bySession.get(sessionId)?.keys() ?? [])])
            this.onResolved(sessionId, requestId);
    }
    #listsOf(profile) {
        let lists = this.#byProfile.get(profile);
        if (!lists) {
            lists = { permission: new SortedList(byOrder), question: new SortedList(byOrder) };
            this.#byProfile.set(profile, lists);
        }
        return lists;
    }
    // ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    /** One page of what a caller may answer, oldest first. @throws SG_ERR_VALIDATION on a cursor that is none of ours */
    page(query, principal) {
        const { rows, isMore } = this.rows(query, principal);
        return { items: rows.map(({ item }) => item), next: isMore ? encodeOrder(rows.at(-1).order) : undefined };
    }
    /** As `page`, each with its place. @returns `isMore`: there are others after them */
    rows(query, principal) {
        const after = query.cursor === undefined ? 0 : decodeOrder(query.cursor);
        const page = new PageBuilder(query.limit);
        const rows = [];
        for (const entry of this.#entries(query, principal, after)) {
            const item = this.#itemOf(entry);
            if (!item)
                continue;
            if (!page.add(item))
                return { rows, isMore: true };
            rows.push({ order: entry.order, item });
        }
        return { rows, isMore: false };
    }
    /** What waits, at other nodes too, as far as they have told it. */
    count(principal) {
        return sumOf([this.countHere(principal), ...[...this.#elsewhere.keys()].map((n) => this.countAt(n, principal))]);
    }
    countHere(principal) {
        const count = { permissions: 0, questions: 0 };
        for (const name of new Set(visibleProfiles(principal) ?? [ALL])) {
            const lists = this.#byProfile.get(name);
            count.permissions += lists?.permission.length ?? 0;
            count.questions += lists?.question.length ?? 0;
        }
        return count;
    }
    countAt(node, principal) {
        const seen = Object.entries(this.#elsewhere.get(node) ?? {}).filter(([name]) => visible(principal, name));
        return sumOf(seen.map(([, [permissions, questions]]) => ({ permissions, questions })));
    }
    /** What waits here, by profile. */
    get waiting() {
        const profiles = [...this.#byProfile].filter(([name]) => name !== ALL);
        return Object.fromEntries(profiles.map(([name, lists]) => [name, [lists.permission.length, lists.question.length]]));
    }
    /** Another node says what waits there; undefined: it is gone. */
    setElsewhere(node, waiting) {
        const before = this.#elsewhere.get(node) ?? {};
        if (waiting)
            this.#elsewhere.set(node, waiting);
        else
            this.#elsewhere.delete(node);
        for (const profile of new Set([...Object.keys(before), ...Object.keys(waiting ?? {})]))
            if (String(before[profile]) !== String(waiting?.[profile]))
                this.listeners.emit('elsewhere', { profile });
    }
    /** Which nodes have said what waits there. */
    get elsewhere() {
        return [...this.#elsewhere.keys()];
    }
    #entries({ sessionId, profile, kind }, principal, after) {
        if (sessionId !== undefined) {
            const isWanted = (entry) => entry.order > after &&
                visible(principal, entry.profile) &&
                (profile === undefined || entry.profile === profile) &&
                (kind === undefined || entry.kind === kind);
            return [...(this.#bySession.get(sessionId)?.values() ?? [])].filter(isWanted).sort(byOrder);
        }
        const seen = profile === undefined ? (visibleProfiles(principal) ?? [ALL]) : visible(principal, profile) ? [profile] : [];
        const lists = [...new Set(seen)].flatMap((name) => {
            const ofProfile = this.#byProfile.get(name);
            return ofProfile ? (kind === undefined ? KINDS : [kind]).map((kind) => ofProfile[kind]) : [];
        });
        return merged(lists.map((list) => list.ascending(({ order }) => order > after)));
    }
    #itemOf({ sessionId, requestId, kind, since, seq }) {
        const found = this.#find(sessionId, requestId);
        if (!found)
            return undefined;
        const { request, session } = found;
        const { id, title, profile, cwd, jobId } = session;
        const { expiresAt } = request;
        return {
            ...{ kind, request, since, seq },
            session: { id, title, profile, cwd, ...(jobId !== undefined && { jobId }) },
            ...(expiresAt !== undefined && { expiresAt }),
        };
    }
}
export const sumOf = (counts) => ({
    permissions: counts.reduce((sum, { permissions }) => sum + permissions, 0),
    questions: counts.reduce((sum, { questions }) => sum + questions, 0),
});
const byOrder = (a, b) => a.order - b.order || (a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : 0);
/** Several lists in order as one; no more of each is read than is needed. */
function* merged(lists) {
    const heads = lists.flatMap((list) => {
        const { value } = list.next();
        return value ? [{ value: value, list }] : [];
    });
    while (heads.length > 0) {
        let first = 0;
        for (let at = 1; at < heads.length; at++)
            if (byOrder(heads[at].value, heads[first].value) < 0)
                first = at;
        const head = heads[first];
        yield head.value;
        const { value } = head.list.next();
        if (value)
            head.value = value;
        else
            heads.splice(first, 1);
    }
}
//# sourceMappingURL=inbox.js.map