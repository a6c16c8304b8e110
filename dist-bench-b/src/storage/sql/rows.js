import { isTerminal } from '../../jobs/job.js';
import { isTerminal as isEnd } from '../../sessions/kept/journal.js';
/** The column of a name. */
export const columnOf = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Of what sums of usage are kept. */
export const USAGE_KEY = ['day', 'profile', 'agent', 'person'];
export function restColumns(state, asleep) {
    const { info, order } = state;
    const hasEnded = isEnd(info);
    if (!hasEnded && !asleep)
        return undefined;
    return {
        ended: hasEnded ? info.status : null,
        endedAt: hasEnded ? info.lastActivityAt : null,
        asleep: (!hasEnded && asleep?.status) || null,
        wakesAt: asleep?.wakesAt ?? null,
        sdkSession: asleep?.sdkSessionId ?? null,
        ...{ engine: info.engine, place: order ?? null },
    };
}
export function listedColumns({ info, order, home }) {
    return { status: info.status, engine: info.engine, place: order ?? null, home: home ?? null };
}
/** When it is next, whether it may be claimed by now (null: not queued), and when it ended. */
export function jobTimes({ status, nextRunAt, finishedAt }) {
    const ready = nextRunAt === undefined ? 1 : 0;
    return [nextRunAt ?? null, status === 'queued' ? ready : null, isTerminal(status) ? (finishedAt ?? 0) : null];
}
export const keptRow = ({ key, fingerprint, made }, now) => ({
    ...{ key, fingerprint },
    made: JSON.stringify(made),
    since: now,
});
export const deliveryValues = ({ lane, id, delivery }) => ({
    ...{ lane, id },
    delivery: JSON.stringify(delivery),
});
//# sourceMappingURL=rows.js.map