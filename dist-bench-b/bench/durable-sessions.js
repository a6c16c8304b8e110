import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, interleave, line, median, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const SESSIONS = 100;
const PER_SECOND = 10_000;
const SECONDS = 3;
const ROUNDS = 5;
const DELAY_TARGET_MS = 10;
const IDLE = 2_000;
const RELEASED_TARGET_KB = 10;
const PARKED = 10_000;
const JOBS = 100_000;
const BOOT_TARGET_S = 3;
/** Sessions that outlive the process, beside sessions that do not: their events, their memory when idle, and the way back. */
export async function durableSessions() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-durable-'));
    try {
        await events(join(folder, 'events'));
        await idle(join(folder, 'idle'));
        await boot(join(folder, 'boot'));
    }
    finally {
        await rm(folder, { recursive: true, force: true });
    }
}
async function events(folder) {
    const delays = [];
    const open = async (kind) => {
        const server = await ServerProcess.start('servers/durable-sessions.js', { argv: [kind, folder] });
        await server.call('start');
        const ids = await server.call('create', SESSIONS);
        const cpu = async () => {
            let emitted = 0;
            const spent = await server.cpuOf(async () => {
                const result = await server.call('emit', { ids, perSecond: PER_SECOND, seconds: SECONDS });
                if (kind === 'sqlite')
                    delays.push(result);
                emitted = result.emitted;
            });
            return spent / emitted;
        };
        return { server, cpu };
    };
    const [ours, baseline] = [await open('sqlite'), await open('memory')];
    console.log(line(`an event of 1 KB, ${PER_SECOND} a second in ${SESSIONS} sessions, CPU`, await interleave(ROUNDS, ours.cpu, baseline.cpu), 'us'));
    const p99 = median(delays.map((delay) => delay.p99));
    const worst = median(delays.map((delay) => delay.max));
    console.log(`event loop meanwhile: p99 ${format(p99)} ms, worst ${format(worst)} ms${verdict(p99, DELAY_TARGET_MS, 'ms')}`);
    await Promise.all([ours.server.stop(), baseline.server.stop()]);
}
async function idle(folder) {
    const perSession = async (argv, released) => {
        const server = await ServerProcess.start('servers/durable-sessions.js', { argv, exposeGc: true });
        await server.call('start');
        await server.call('create', SESSIONS);
        if (released)
            await server.call('released');
        const before = await server.memoryInUse();
        await server.call('create', IDLE);
        if (released)
            await server.call('released');
        const after = await server.memoryInUse();
        await server.stop();
        return (after.heapUsed + after.external - before.heapUsed - before.external) / IDLE / 1024;
    };
    const ours = await perSession(['sqlite', folder, 'release'], true);
    const live = await perSession(['memory', folder], false);
    console.log(`an idle session whose engine was released: ${format(ours)} KB, a live one beside it ${format(live)} KB without its engine's process` +
        verdict(ours, RELEASED_TARGET_KB, 'KB'));
}
async function boot(folder) {
    const filler = await ServerProcess.start('servers/storage.js', { argv: ['sqlite', folder] });
    await filler.call('fill', { sessions: PARKED, jobs: JOBS });
    await filler.stop();
    const times = [];
    for (let round = 0; round < 3; round++) {
        const server = await ServerProcess.start('servers/durable-sessions.js', { argv: ['sqlite', folder] });
        times.push((await server.call('start')) / 1000);
        await server.stop();
    }
    console.log(`a gateway with ${PARKED} parked sessions and ${JOBS} jobs takes work after ${format(median(times))} s` +
        verdict(median(times), BOOT_TARGET_S, 's'));
}
//# sourceMappingURL=durable-sessions.js.map