import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, interleave, line, median, percentile, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const EVENTS_PER_SLICE = 10_000;
const ROUNDS = 7;
const RATES = [100, 1_000, 10_000];
const SECONDS = 4;
const DELAY_TARGET_MS = 10;
const SESSIONS = 10_000;
const JOBS = 100_000;
const BOOT_TARGET_S = 3;
/** What it costs to have every event on the disk before anyone sees it, beside the journal in memory; and a start with much there. */
export async function storage() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-storage-'));
    try {
        await journaling(folder);
        await rm(join(folder, 'gateway.db'), { force: true });
        await booting(folder);
    }
    finally {
        await rm(folder, { recursive: true, force: true });
    }
}
async function journaling(folder) {
    const sqlite = await ServerProcess.start('servers/storage.js', { argv: ['sqlite', folder] });
    const memory = await ServerProcess.start('servers/storage.js', { argv: ['memory', folder] });
    const rates = [];
    const cpu = (server) => async () => {
        const spent = await server.cpuOf(async () => {
            const rate = await server.call('burst', EVENTS_PER_SLICE);
            if (server === sqlite)
                rates.push(rate);
        });
        return spent / EVENTS_PER_SLICE;
    };
    console.log(line('an event of 1 KB journaled, CPU', await interleave(ROUNDS, cpu(sqlite), cpu(memory)), 'us'));
    console.log(`events of 1 KB journaled, 1,000 writes at a time: ${format(median(rates))} per second`);
    for (const perSecond of RATES) {
        const synced = await memory.call('synced', 200);
        const ours = await sqlite.call('paced', { perSecond, seconds: SECONDS });
        const baseline = await memory.call('paced', { perSecond, seconds: SECONDS });
        const target = perSecond === 10_000 ? verdict(ours.delayP99, DELAY_TARGET_MS, 'ms') : '';
        console.log(`${perSecond} events a second: confirmed after p50 ${format(ours.ackP50)} ms, p99 ${format(ours.ackP99)} ms` +
            ` (an append and a sync just before: p50 ${format(median(synced))} ms, p99 ${format(percentile(synced, 0.99))} ms);` +
            ` event loop p99 ${format(ours.delayP99)} ms, worst ${format(ours.delayMax)} ms,` +
            ` in memory p99 ${format(baseline.delayP99)} ms, worst ${format(baseline.delayMax)} ms${target}`);
    }
    await Promise.all([sqlite.stop(), memory.stop()]);
}
async function booting(folder) {
    const server = await ServerProcess.start('servers/storage.js', { argv: ['sqlite', join(folder, 'boot')] });
    await server.call('fill', { sessions: SESSIONS, jobs: JOBS });
    const boots = [];
    for (let round = 0; round < 3; round++)
        boots.push(await server.call('boot'));
    const of = (part) => median(boots.map((boot) => boot[part]));
    const total = (of('open') + of('journal') + of('parked') + of('jobs')) / 1000;
    console.log(`start with ${SESSIONS} parked sessions and ${JOBS} jobs, a tenth of them queued: ${format(total)} s =` +
        ` open ${format(of('open'))} ms, sessions ${format(of('journal'))} ms, parks ${format(of('parked'))} ms,` +
        ` active jobs ${format(of('jobs'))} ms; event loop at worst ${format(of('delayMax'))} ms${verdict(total, BOOT_TARGET_S, 's')}`);
    const { claims, pages } = await server.call('jobCosts', 500);
    console.log(`among them, a claim: p50 ${format(median(claims))} ms, p99 ${format(percentile(claims, 0.99))} ms;` +
        ` a page of 100 by profile and status: p50 ${format(median(pages))} ms, p99 ${format(percentile(pages, 0.99))} ms`);
    await server.stop();
}
//# sourceMappingURL=storage.js.map