import { format, median, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const SESSIONS = 10_000;
/** Made and measured before, so that compiled code and caches are not counted to the sessions. */
const WARM_UP = 500;
const ROUNDS = 3;
const TARGET_KB = 3;
/** Memory of a session that has started and waits, beyond the runner of its engine. */
export async function idleHeap() {
    const rounds = { sessions: [], runners: [] };
    for (let round = 0; round < ROUNDS; round++) {
        rounds.sessions.push(await bytesPerOne('sessions'));
        rounds.runners.push(await bytesPerOne('runners'));
    }
    const kb = (of, what) => median(of.map((one) => one[what])) / 1024;
    const session = kb(rounds.sessions, 'heap');
    const runner = kb(rounds.runners, 'heap');
    console.log(`heap of an idle session: ${format(session - runner)} KB beyond its runner = ${format(session)} KB with it, runner alone ` +
        `${format(runner)} KB (${format(session / runner)}x)${verdict(session - runner, TARGET_KB, 'KB')}`);
    console.log(`  outside the heap: ${format(kb(rounds.sessions, 'outside'))} KB of log; RSS per session ${format(kb(rounds.sessions, 'rss'))} KB`);
}
async function bytesPerOne(what) {
    const server = await ServerProcess.start('servers/idle-sessions.js', { exposeGc: true });
    await server.call(what, WARM_UP);
    const before = await server.memoryInUse();
    await server.call(what, SESSIONS);
    const after = await server.memoryInUse();
    await server.stop();
    return {
        heap: (after.heapUsed - before.heapUsed) / SESSIONS,
        outside: (after.arrayBuffers - before.arrayBuffers) / SESSIONS,
        rss: (after.rss - before.rss) / SESSIONS,
    };
}
//# sourceMappingURL=idle-heap.js.map