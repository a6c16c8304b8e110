import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { VERSION } from '../../lib/package-root.js';
import { StorageError } from '../storage.js';
import { isGone, LOOK_AGAIN_MS, nameOf, neighboursAsked } from './membership.js';
import { statement } from './plan.js';
import { DELETE_SINGLE, INSERT, JOIN_IN_TURN, NAMESAKES } from './tables/members.js';
import { integerArray } from './values.js';
/**
 * Adds the row of a node, with its lease. Another node of its name has to be gone: one whose process is not there any more is; one that
 * nothing is known of has the rest of its lease, in which it renews it if it is alive.
 * @throws StorageError `STORAGE_HELD` when it does
 */
export async function enter(link, options, { name, url, protocol, version, slots, config }, leaseMs) {
    const startedAt = Date.now() - process.uptime() * 1000;
    const values = [
        ...[hostname(), process.pid, startedAt, version || VERSION],
        ...[name, url, protocol, slots, config, leaseMs],
    ];
    const seen = new Map();
    for (;;) {
        const since = performance.now();
        const namesakes = await living(link, name);
        const there = namesakes.filter((one) => !isGone(one));
        const alive = there.find(({ n, until }) => seen.has(n) && seen.get(n) !== until);
        if (alive)
            throw taken(options.place, alive);
        for (const { n, until } of there)
            seen.set(n, until);
        if (there.length === 0) {
            const gone = integerArray(namesakes.map(({ n }) => n));
            const [, , mine, found] = await link.run([
                ...[statement(JOIN_IN_TURN, options.schema), statement(DELETE_SINGLE)],
                ...[statement(INSERT, ...values, gone), neighboursAsked(leaseMs)],
            ]);
            if (mine.length > 0)
                return { n: mine[0].n, since, neighbours: found };
        }
        await sleep(LOOK_AGAIN_MS);
    }
}
async function living(link, name) {
    const [rows] = await link.run([statement(NAMESAKES, name)]);
    return rows;
}
const taken = (place, { url, ...holder }) => new StorageError('STORAGE_HELD', `${place} has a living node of this name already: ${nameOf(holder)}, at ${url}. Give this one a name of its own (cluster.node), or stop the other first.`);
//# sourceMappingURL=entering.js.map