import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, interleave, median, percentile, ratioOf, verdict } from './lib/figures.js';
import { ServerProcess } from './lib/server-process.js';
const SESSIONS = 1_000;
const ASKS = 400;
const PER_SECOND = 200;
const ROUNDS = 5;
const TARGETS_MS = { memory: 50, sqlite: 100 };
/**
 * From a permission request to the first byte of what a channel is told of it, with 1,000 sessions live; the baseline is a bare POST over
 * as many connections as a gateway opens to one receiver. Whoever waits for a connection waits as long as the receiver takes to answer:
 * on a machine that is busy with other things that is most of the time.
 */
export async function notifications() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-notifications-'));
    try {
        for (const kind of ['memory', 'sqlite'])
            await measure(kind, folder);
    }
    finally {
        await rm(folder, { recursive: true, force: true });
    }
}
async function measure(kind, folder) {
    const receiver = await Receiver.start();
    const server = await ServerProcess.start('servers/notifying.js', { argv: [kind, folder, receiver.url] });
    await server.call('start', SESSIONS);
    const latencies = { asks: [], bare: [] };
    const cpu = { asks: [], bare: [] };
    const p95Of = async (call) => {
        const arrived = receiver.expect(ASKS);
        let own = [];
        const spent = await server.cpuOf(async () => {
            await server.call(call, { count: ASKS, perSecond: PER_SECOND });
            own = await arrived;
        });
        latencies[call].push(...own);
        cpu[call].push(spent / ASKS);
        return percentile(own, 0.95);
    };
    const paired = await interleave(ROUNDS, () => p95Of('asks'), () => p95Of('bare'));
    report(kind, latencies, cpu, ratioOf(paired));
    await server.stop();
    receiver.stop();
}
/** Without the first round of each, which is not counted. */
function report(kind, latencies, cpu, p95Ratio) {
    const [ours, bare] = [latencies.asks, latencies.bare].map((all) => percentile(all.slice(ASKS), 0.95));
    const [spent, spentBare] = [cpu.asks, cpu.bare].map((all) => median(all.slice(1)));
    console.log(`event to a channel's first byte, ${kind}, ${SESSIONS} sessions, ${PER_SECOND} a second: p95 ${format(ours)} ms, ` +
        `a bare POST ${format(bare)} ms, ${format(p95Ratio)}x in the median round; ` +
        `CPU ${format(spent)} of ${format(spentBare)} us = ${format(spent / spentBare)}x${verdict(ours, TARGETS_MS[kind], 'ms')}`);
}
/** Takes what is sent and reads from it when that began. */
class Receiver {
    url = '';
    #latencies = [];
    #expected = 0;
    #done = () => { };
    #server = createServer((incoming, response) => {
        const arrivedAt = performance.timeOrigin + performance.now();
        let text = '';
        incoming.setEncoding('utf8').on('data', (chunk) => {
            text += chunk;
        });
        incoming.on('end', () => {
            response.writeHead(204).end();
            const [, sentAt] = /"title":"at ([\d.]+)"/.exec(text) ?? [];
            this.#latencies.push(arrivedAt - Number(sentAt));
            if (this.#latencies.length === this.#expected)
                this.#done(this.#latencies);
        });
    });
    static async start() {
        const receiver = new Receiver();
        await new Promise((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
        receiver.url = `http://127.0.0.1:${receiver.#server.address().port}`;
        return receiver;
    }
    expect(count) {
        this.#latencies = [];
        this.#expected = count;
        return new Promise((resolve) => {
            this.#done = resolve;
        });
    }
    stop() {
        this.#server.closeAllConnections();
        this.#server.close();
    }
}
//# sourceMappingURL=notifications.js.map