import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, MB, median } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const EVENTS = 100_000;
const ROUNDS = 3;
/** `attached`, `system_init`, `status_changed`, `synced`. */
const GREETING = 4;
const GIVE_BACK = { MALLOC_MMAP_THRESHOLD_: '32768' };
/** What an engine does to a durable gateway that says 100 MB as fast as it can: one that waits when it is asked to, beside one that does not. */
export async function burst() {
    const heeding = [];
    const heedless = [];
    for (let round = 0; round < ROUNDS; round++) {
        heeding.push(await run(true));
        heedless.push(await run(false));
    }
    const of = (runs, what) => median(runs.map((one) => one[what]));
    const row = (label, what, unit) => console.log(`${label}: ${format(of(heeding, what))} ${unit} = ${format(of(heeding, what) / of(heedless, what))}x the ` +
        `${format(of(heedless, what))} ${unit} of an engine that does not wait`);
    row('a durable burst of 100 MB, the latest event after it was said', 'latestMs', 'ms');
    row('a durable burst of 100 MB, memory at its peak', 'addedMb', 'MB');
    row('a durable burst of 100 MB, said and read', 'seconds', 's');
}
async function run(heeds) {
    const folder = mkdtempSync(join(tmpdir(), 'bench-burst-'));
    const server = await ServerProcess.start('servers/gateway.js', {
        argv: ['{}', folder],
        exposeGc: true,
        env: GIVE_BACK,
    });
    const id = await server.call('createSession');
    const url = await server.call('socketUrl', id);
    let latestMs = 0;
    let left = EVENTS + GREETING;
    let arrived = () => { };
    const all = new Promise((resolve) => {
        arrived = resolve;
    });
    const socket = await RawSocket.open(url, {
        onText: (text) => {
            const ts = /"ts":(\d+)/.exec(text.toString('latin1', 0, 80))?.[1];
            if (ts !== undefined)
                latestMs = Math.max(latestMs, Date.now() - Number(ts));
            if (--left === 0)
                arrived();
        },
    });
    const before = await server.memoryInUse();
    const from = performance.now();
    await server.call('burst', { id, events: EVENTS, heeds });
    await all;
    const seconds = (performance.now() - from) / 1_000;
    const peak = await server.call('peakRss');
    socket.drop();
    await server.stop();
    rmSync(folder, { recursive: true });
    return { latestMs, addedMb: (peak - before.rss) / MB, seconds };
}
//# sourceMappingURL=burst.js.map