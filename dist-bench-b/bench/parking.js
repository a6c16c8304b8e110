import { format, median, percentile, verdict } from './lib/figures.js';
import { Lot } from './lib/lot.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const WARM_UP = 300;
const WAKES = 1_500;
const PARKED = 10_000;
const LISTS = 200;
const RESULT = JSON.stringify({ status: 'ok', output: { type: 'json', value: { url: 'https://example.com/report' } } });
const WAKE_TARGET_MS = 1.5;
const LIST_TARGET_MS = 10;
const HEAP_TARGET_KB = 1.5;
/** What it costs to wait without a process: the way back from it, the memory and disk meanwhile, and the list of who waits. */
export async function parking() {
    const bare = await Bare.open();
    const lot = await Lot.open('servers/parked.js', ['file']);
    await lot.wakes(WARM_UP);
    await bare.posts(WARM_UP);
    const [ours, baseline] = [[], []];
    for (let round = 0; round < 5; round++) {
        ours.push(...(await lot.wakes(WAKES / 5)));
        baseline.push(...(await bare.posts(WAKES / 5)));
    }
    const p50 = median(ours);
    console.log(`result to first event after the wake, file store: p50 ${format(p50)} ms, p99 ${format(percentile(ours, 0.99))} ms; ` +
        `a bare POST: p50 ${format(median(baseline))} ms, p99 ${format(percentile(baseline, 0.99))} ms` +
        verdict(p50, WAKE_TARGET_MS, 'ms'));
    await lot.stop();
    await bare.close();
    await manyParked();
}
/** The same body, parsed and checked in the same way, with nothing behind it. */
class Bare {
    #server;
    #http;
    constructor(server, http) {
        this.#server = server;
        this.#http = http;
    }
    static async open() {
        const server = await ServerProcess.start('servers/bare-fastify.js');
        return new Bare(server, await RawHttp.open(await server.call('url')));
    }
    async posts(count) {
        const times = [];
        for (let n = 0; n < count; n++) {
            const start = performance.now();
            const { status } = await this.#http.request('POST', `/v1/executions/${n}/result`, RESULT);
            times.push(performance.now() - start);
            if (status !== 200)
                throw new Error(`the bare POST was answered ${status}`);
        }
        return times;
    }
    async close() {
        this.#http.close();
        await this.#server.stop();
    }
}
async function manyParked() {
    const server = await ServerProcess.start('servers/parked.js', { argv: ['file'], exposeGc: true });
    await server.call('park', WARM_UP);
    const before = await server.memoryInUse();
    const diskBefore = await server.call('disk');
    for (let parked = 0; parked < PARKED; parked += 500)
        await server.call('park', 500);
    const after = await server.memoryInUse();
    const heapKb = (after.heapUsed - before.heapUsed) / PARKED / 1024;
    const diskKb = ((await server.call('disk')) - diskBefore) / PARKED / 1024;
    console.log(`a session parked in the file store: ${format(heapKb)} KB of heap, ${format(diskKb)} KB on disk` +
        verdict(heapKb, HEAP_TARGET_KB, 'KB'));
    const http = await RawHttp.open(await server.call('url'));
    const times = [];
    for (let n = 0; n < LISTS; n++) {
        const start = performance.now();
        const { status, body } = await http.request('GET', '/v1/sessions?limit=200');
        times.push(performance.now() - start);
        if (status !== 200 || body.split('"status":"parked"').length !== 201)
            throw new Error(`the list answered ${status}`);
    }
    console.log(`GET /sessions?limit=200 with ${PARKED} parked: p50 ${format(median(times))} ms, p99 ${format(percentile(times, 0.99))} ms` +
        verdict(median(times), LIST_TARGET_MS, 'ms'));
    http.close();
    await server.stop();
}
//# sourceMappingURL=parking.js.map