import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ageOf } from './lib/ask.js';
import { DiskProbe } from './lib/disk-probe.js';
import { format, interleave, line, median, percentile, verdict } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const REQUESTS = 400;
const ROUNDS = 9;
const TARGET_MS = 0.12;
const TARGET_BEYOND_SYNC_MS = 0.15;
/** From the engine's request for permission to its first byte at a socket, one at a time while nothing else happens. */
export async function permissionRequest() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-ask-'));
    const disk = await DiskProbe.open(folder);
    const [memory, sqlite, bare] = await Promise.all([
        Asker.open('servers/asking.js'),
        Asker.open('servers/asking.js', [folder]),
        Asker.open('servers/asking-ws.js'),
    ]);
    try {
        const inMemory = await interleave(ROUNDS, memory.p50, bare.p50);
        const what = 'a permission request at a socket';
        console.log(line(`${what}, in memory, p50`, inMemory, 'ms') + verdict(median(inMemory.ours), TARGET_MS, 'ms'));
        console.log(`  p99 ${format(memory.p99)} ms, baseline ${format(bare.p99)} ms`);
        const onDisk = await interleave(ROUNDS, sqlite.p50, disk.syncMs);
        console.log(line(`${what}, on disk, p50 against an append of 1 KB and its sync`, onDisk, 'ms') +
            verdict(beyond(onDisk), TARGET_BEYOND_SYNC_MS, 'ms beyond it'));
        console.log(`  p99 ${format(sqlite.p99)} ms; ${format(beyond(onDisk))} ms beyond the sync`);
    }
    finally {
        await Promise.all([memory, sqlite, bare, disk].map((one) => one.stop()));
        await rm(folder, { recursive: true, force: true });
    }
}
const beyond = ({ ours, baseline }) => median(ours.map((value, round) => value - baseline[round]));
class Asker {
    #server;
    #latencies = [];
    #socket;
    #seen = () => { };
    constructor(server) {
        this.#server = server;
    }
    static async open(module, argv = []) {
        const asker = new Asker(await ServerProcess.start(module, { argv }));
        asker.#socket = await RawSocket.open(await asker.#server.call('socketUrl'), {
            onText(text) {
                const latency = ageOf(text.toString());
                if (latency !== undefined)
                    asker.#seen(latency);
            },
        });
        return asker;
    }
    p50 = async () => {
        const latencies = [];
        while (latencies.length < REQUESTS) {
            const seen = new Promise((resolve) => {
                this.#seen = resolve;
            });
            this.#server.tell('ask');
            latencies.push(await seen);
        }
        this.#latencies.push(...latencies);
        return median(latencies);
    };
    get p99() {
        return percentile(this.#latencies, 0.99);
    }
    async stop() {
        this.#socket.drop();
        await this.#server.stop();
    }
}
//# sourceMappingURL=permission-request.js.map