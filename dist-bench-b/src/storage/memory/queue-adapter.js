import { claimPatch, isAsExpected, } from '../../jobs/adapter.js';
import { isTerminal } from '../../jobs/job.js';
import { patched } from '../../jobs/patch.js';
import { SortedList } from '../../lib/sorted-list.js';
const bySubmission = (a, b) => a.ordinal - b.ordinal;
const byTurn = (a, b) => b.priority - a.priority || bySubmission(a, b);
const byTime = (key) => (a, b) => (a.record.info[key] ?? 0) - (b.record.info[key] ?? 0) || bySubmission(a, b);
/**
 * Keeps jobs for as long as the process runs. Every operation goes through an index, so that what it costs does not depend on how many
 * jobs there are.
 * @param options.now epoch milliseconds; default `Date.now`
 */
export function createMemoryQueueAdapter({ now = Date.now, onKey, onDelivery } = {}) {
    const entries = new Map();
    const buckets = new Map();
    const ready = new SortedList(byTurn);
    const delayed = new SortedList(byTime('nextRunAt'));
    const finished = new SortedList(byTime('finishedAt'));
    const tokensByDay = new Map();
    let ordinal = 0;
    const timeIndex = ({ record: { info } }) => {
        if (info.status === 'queued')
            return info.nextRunAt === undefined ? ready : delayed;
        return isTerminal(info.status) ? finished : undefined;
    };
    const index = (entry) => {
        const { status, profile } = entry.record.info;
        const key = `${status} ${profile}`;
        let bucket = buckets.get(key);
        if (!bucket) {
            bucket = { status, profile, entries: new SortedList(bySubmission) };
            buckets.set(key, bucket);
        }
        bucket.entries.add(entry);
        timeIndex(entry)?.add(entry);
    };
    const unindex = (entry) => {
        const { status, profile } = entry.record.info;
        buckets.get(`${status} ${profile}`)?.entries.delete(entry);
        // one that fell due stands among the ready ones with its time
        if (!timeIndex(entry)?.delete(entry))
            ready.delete(entry);
    };
    const change = (entry, patch) => {
        const { info, request, rev = 0 } = entry.record;
        const changed = patched(info, patch);
        const moves = changed.status !== info.status || changed.nextRunAt !== info.nextRunAt || changed.finishedAt !== info.finishedAt;
        if (moves)
            unindex(entry);
        entry.record = { info: changed, request, rev: rev + 1 };
        if (moves)
            index(entry);
        return entry.record;
    };
    const update = (id, patch, expected, deliveries = []) => {
        const entry = entries.get(id);
        if (!entry || !isAsExpected(expected, entry.record.info.status, entry.record.rev))
            return null;
        for (const delivery of deliveries)
            onDelivery?.(delivery);
        return change(entry, patch);
    };
    const charge = (day, tokens) => {
        const total = (tokensByDay.get(day) ?? 0) + tokens;
        tokensByDay.set(day, total);
        return total;
    };
    const takeDue = () => {
        for (let due = delayed.first; due && due.record.info.nextRunAt <= now(); due = delayed.first) {
            delayed.delete(due);
            ready.add(due);
        }
    };
    const claim = (limit, begin) => {
        const claimed = [];
        takeDue();
        for (let entry = ready.first; entry && claimed.length < limit; entry = ready.first)
            claimed.push(change(entry, claimPatch(entry.record.info, begin, claimed.length)));
        return claimed;
    };
    const before = ({ id, createdAt, position = entries.get(id)?.ordinal }) => {
        if (position !== undefined)
            return (entry) => entry.ordinal < position;
        return (entry) => entry.record.info.createdAt <= createdAt;
    };
    return {
        async add(record, key) {
            if (entries.has(record.info.id))
                throw new Error(`There is a job ${record.info.id} already.`);
            const { info, request } = record;
            const entry = { record: { info, request, rev: 0 }, ordinal: ++ordinal, priority: request.priority ?? 0 };
            entries.set(record.info.id, entry);
            index(entry);
            if (key)
                onKey?.(key);
        },
        async claimNext() {
            return claim(1)[0] ?? null;
        },
        async claim(limit, { tokens, begin } = {}) {
            const paused = tokens !== undefined && (tokensByDay.get(tokens.day) ?? 0) >= tokens.limit;
            return { jobs: paused ? [] : claim(limit, begin), paused };
        },
        async get(id) {
            return entries.get(id)?.record ?? null;
        },
        async list({ status, profiles, after, limit = Infinity } = {}) {
            const chosen = [...buckets.values()].filter((bucket) => bucket.entries.length > 0 &&
                (status === undefined || status.includes(bucket.status)) &&
                (profiles === undefined || profiles.includes(bucket.profile)));
            const isBefore = after && before(after);
            return newestOf(chosen.map((bucket) => bucket.entries.descending(isBefore)), limit);
        },
        async update(id, patch, expected, deliveries) {
            return update(id, patch, expected, deliveries);
        },
        async counts() {
            return [...buckets.values()]
                .filter(({ status, entries }) => !isTerminal(status) && entries.length > 0)
                .map(({ status, profile, entries }) => ({ status, profile, count: entries.length }));
        },
        async delayed(after, limit) {
            const found = [];
            for (const { record } of delayed.ascending(({ record }) => record.info.nextRunAt > after)) {
                if (found.length === limit)
                    break;
                found.push({ id: record.info.id, nextRunAt: record.info.nextRunAt });
            }
            return found;
        },
        async remove(id) {
            const entry = entries.get(id);
            if (!entry)
                return;
            unindex(entry);
            entries.delete(id);
        },
        async ended(olderThanMs, limit) {
            const by = now() - olderThanMs;
            const isYoung = ({ record: { info } }) => (info.finishedAt ?? 0) > by;
            const infos = [];
            for (const entry of finished.ascending()) {
                if (infos.length === limit || isYoung(entry))
                    break;
                infos.push(entry.record.info);
            }
            return infos;
        },
        async prune(olderThanMs) {
            const limit = now() - olderThanMs;
            let count = 0;
            for (let old = finished.first; old && (old.record.info.finishedAt ?? 0) <= limit; old = finished.first) {
                unindex(old);
                entries.delete(old.record.info.id);
                count++;
            }
            return count;
        },
        async addDailyTokens(day, tokens) {
            return charge(day, tokens);
        },
        async dailyTokens(day) {
            return tokensByDay.get(day) ?? 0;
        },
        async settle(id, patch, { day, tokens }, expected, deliveries) {
            return { record: update(id, patch, expected, deliveries), dailyTokens: charge(day, tokens) };
        },
    };
}
/** Merges lists that each come newest first. */
function newestOf(lists, limit) {
    const heads = lists.map((list) => ({ list, next: list.next().value }));
    const records = [];
    while (records.length < limit) {
        let newest;
        for (const head of heads)
            if (head.next && (!newest?.next || head.next.ordinal > newest.next.ordinal))
                newest = head;
        if (!newest?.next)
            break;
        const { record, ordinal } = newest.next;
        records.push({ info: record.info, request: record.request, rev: record.rev ?? 0, position: ordinal });
        newest.next = newest.list.next().value;
    }
    return records;
}
//# sourceMappingURL=queue-adapter.js.map