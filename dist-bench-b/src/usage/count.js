export const DAY_MS = 86_400_000;
/** The day that was asked for last, which is almost always today. */
let last = { number: Number.NaN, text: '' };
/** The day of a moment, in UTC. */
export function dayOf(ts) {
    const number = Math.floor(ts / DAY_MS);
    if (number !== last.number)
        last = { number, text: new Date(ts).toISOString().slice(0, 10) };
    return last.text;
}
/** What a moment adds to the sums of its day; undefined: nothing. */
export function countOf(body, ts, session) {
    if (body.type === 'session_closed' && session.jobId === undefined)
        return undefined;
    const { profile, agent, person } = session;
    const key = { day: dayOf(ts), profile, agent, person };
    switch (body.type) {
        case 'turn_completed':
            return turn(body, session, key);
        case 'permission_requested':
            return { ...key, approvalsAsked: 1 };
        case 'permission_resolved':
            return settled(body, ts, session, key);
        case 'session_closed':
            return { ...key, jobs: 1 };
        default:
            return undefined;
    }
}
/** Written out: V8 makes a hash table of an object that several spreads fill. */
function turn({ subtype, isError, usage }, session, { day, profile, agent, person }) {
    const count = {
        day,
        profile,
        agent,
        person,
        turns: 1,
        inputTokens: amount(usage?.inputTokens),
        outputTokens: amount(usage?.outputTokens),
        cacheCreationTokens: amount(usage?.cacheCreationTokens),
        cacheReadTokens: amount(usage?.cacheReadTokens),
        costUsd: session.takeCost(),
    };
    count[subtype === 'interrupted' ? 'turnsInterrupted' : isError ? 'turnsFailed' : 'turnsSucceeded'] = 1;
    return count;
}
/** What policy decided nobody was asked, or nobody waited for any more. */
function settled({ requestId, resolvedBy }, ts, session, key) {
    if (resolvedBy === 'policy')
        return undefined;
    const since = session.waitedSince(requestId);
    const waitMs = since === undefined ? undefined : Math.max(0, ts - since);
    return {
        ...key,
        ...(resolvedBy === 'timeout' ? { approvalsExpired: 1 } : { approvalsAnswered: 1 }),
        ...(waitMs !== undefined && { approvalWaits: 1, approvalWaitMs: waitMs, approvalWaitMaxMs: waitMs }),
    };
}
/** What an engine says may be anything. */
const amount = (value) => typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0;
//# sourceMappingURL=count.js.map