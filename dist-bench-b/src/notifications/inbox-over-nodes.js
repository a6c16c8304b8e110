import { encodeOrder, MAX_PAGE, PageBuilder } from '../lib/paging.js';
import { visibleProfiles } from '../principal.js';
import { sumOf } from './inbox.js';
const questionOf = (query, principal) => ({
    query,
    profiles: visibleProfiles(principal),
});
/** What waits at this node, for another one that asks. */
export function answerNode(inbox, { profiles, query }) {
    const who = { allowedProfiles: profiles && new Set(profiles) };
    return { count: inbox.countHere(who), ...inbox.rows(query, who) };
}
/**
 * One page of what waits at all nodes: places are different over all of them, so that a cursor goes on at any. A node that does not answer
 * is left out: what waits there is on a page again when it, or whoever has its sessions then, answers.
 */
export async function pageOverNodes(inbox, query, principal, ask) {
    const own = inbox.rows(query, principal);
    const found = [own, ...(await ask(questionOf(query, principal))).values()];
    // behind the last row of a page that has more there may be others, which come first
    const complete = Math.min(...found.map(({ rows, isMore }) => (isMore ? rows.at(-1).order : Number.POSITIVE_INFINITY)));
    const rows = found.flatMap(({ rows }) => rows).sort((a, b) => a.order - b.order);
    const page = new PageBuilder(query.limit ?? MAX_PAGE);
    let last;
    for (const row of rows) {
        if (row.order > complete || !page.add(row.item))
            break;
        last = row;
    }
    const isMore = page.items.length < rows.length || found.some(({ isMore }) => isMore);
    return { items: page.items, next: isMore && last ? encodeOrder(last.order) : undefined };
}
/** What waits at all nodes; of one that does not answer, what it told last. */
export async function countOverNodes(inbox, principal, ask) {
    const answers = await ask(questionOf({ limit: 1 }, principal));
    const silent = inbox.elsewhere.filter((n) => !answers.has(n));
    return sumOf([
        inbox.countHere(principal),
        ...[...answers.values()].map(({ count }) => count),
        ...silent.map((n) => inbox.countAt(n, principal)),
    ]);
}
//# sourceMappingURL=inbox-over-nodes.js.map