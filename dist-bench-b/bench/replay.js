import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, interleave, line, percentile, verdict } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const LENGTHS = [
    { events: 1_000, replays: 40, target: undefined },
    { events: 10_000, replays: 10, target: undefined },
    { events: 100_000, replays: 2, target: 1.5 },
];
const FROM_DISK = { events: 100_000, replays: 2, target: 2 };
const ROUNDS = 9;
const P99_TARGET_MS = 15;
const QUIET_MS = 300;
/** Everything is kept, also the longest log. */
const OPTIONS = { eventLog: { maxEvents: 200_000, maxBytes: 256 * 1024 * 1024 } };
/** What a client is sent beside the events that were made for it: `attached`, `system_init`, `status_changed`, `synced`. */
const GREETING = 4;
/** CPU of the server per replay of a whole log, the connection included, while somebody else asks for another session. */
export async function replay() {
    const prober = await ServerProcess.start('lib/prober.js');
    for (const { events, replays, target } of LENGTHS) {
        const ours = await Archive.open('servers/gateway.js', events, GREETING, prober);
        const bare = await Archive.open('servers/bare-ws.js', events, 0, prober);
        const paired = await interleave(ROUNDS, () => ours.slice(replays), () => bare.slice(replays));
        console.log(line(`replay of ${events} events, CPU per replay`, paired, 'us', target));
        const p99 = percentile(ours.latencies, 0.99);
        const p99OfBare = percentile(bare.latencies, 0.99);
        console.log(`  meanwhile GET /v1/sessions/:id: p50 ${format(percentile(ours.latencies, 0.5))} ms, p99 ${format(p99)} ms = ` +
            `${format(p99 / p99OfBare)}x the baseline's ${format(p99OfBare)} ms, when nothing is replayed ` +
            `${format(percentile(ours.quietLatencies, 0.99))} ms${verdict(p99, P99_TARGET_MS, 'ms')}`);
        await Promise.all([ours.close(), bare.close()]);
    }
    await prober.stop();
}
/** The same of a log that is kept on disk and of which a third has left the memory, beside one that has all of it there. */
export async function replayFromDisk() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-replay-'));
    const prober = await ServerProcess.start('lib/prober.js');
    const { events, replays, target } = FROM_DISK;
    const inMemory = Math.round((events * 2) / 3);
    const options = { eventLog: { ...OPTIONS.eventLog, maxEvents: inMemory } };
    const disk = await Archive.open('servers/gateway.js', events, GREETING, prober, { options, folder });
    const memory = await Archive.open('servers/gateway.js', events, GREETING, prober);
    const cpu = await interleave(ROUNDS, () => disk.slice(replays), () => memory.slice(replays));
    const ms = { ours: disk.ms.slice(1), baseline: memory.ms.slice(1) };
    console.log(line(`replay of ${events} events, a third from disk, against memory`, ms, 'ms', target));
    console.log(`  ${line('CPU of both threads', cpu, 'us')}`);
    await Promise.all([disk.close(), memory.close(), prober.stop()]);
    await rm(folder, { recursive: true, force: true });
}
/** One server that holds one long log. */
class Archive {
    /** Milliseconds of each answer that somebody else had during the slices. */
    latencies = [];
    /** The same between the slices: what the machine and the two other processes do to an answer. */
    quietLatencies = [];
    /** Milliseconds of a replay, for each slice. */
    ms = [];
    #server;
    #prober;
    #url;
    #otherUrl;
    #messages;
    constructor(server, prober, url, otherUrl, messages) {
        this.#server = server;
        this.#prober = prober;
        this.#url = url;
        this.#otherUrl = otherUrl;
        this.#messages = messages;
    }
    static async open(module, events, greeting, prober, { options = OPTIONS, folder } = {}) {
        const argv = [JSON.stringify(options), ...(folder === undefined ? [] : [folder])];
        const server = await ServerProcess.start(module, { argv });
        const session = await server.call('createSession');
        const other = await server.call('createSession');
        await server.call('fill', { id: session, events });
        const url = await server.call('replayUrl', session);
        return new Archive(server, prober, url, `${await server.call('url')}/v1/sessions/${other}`, events + greeting);
    }
    /** Microseconds of server CPU per replay; the answers to the other caller are in both figures alike. */
    async slice(replays) {
        await this.#prober.call('start', this.#otherUrl);
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
        this.quietLatencies.push(...(await this.#prober.call('stop')));
        await this.#prober.call('start', this.#otherUrl);
        const start = performance.now();
        const spent = await this.#server.cpuOf(async () => {
            for (let n = 0; n < replays; n++)
                await this.#readAll();
        });
        this.ms.push((performance.now() - start) / replays);
        this.latencies.push(...(await this.#prober.call('stop')));
        return spent / replays;
    }
    #readAll() {
        return new Promise((resolve, reject) => {
            const onProgress = (socket) => {
                if (socket.messages === this.#messages)
                    socket.drop();
            };
            RawSocket.open(this.#url, { onProgress, onClose: resolve }).catch(reject);
        });
    }
    close() {
        return this.#server.stop();
    }
}
//# sourceMappingURL=replay.js.map