import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, percentile, verdict } from './lib/figures.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const SESSIONS = 200;
const CLIENTS = 4;
const ROUNDS = 5;
/** Of one client, in a round. */
const PAGES = 30;
const TARGET_MS = 100;
/** The largest that a caller can attach. */
const META = { note: 'é'.repeat((16 * 1024 - 11) / 2) };
const OPTIONS = { health: true, maxSessions: 2 * SESSIONS };
/** How long `/healthz` takes while four clients list the 200 largest sessions that can be made, beside four that list small ones. */
export async function largestLists() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-lists-'));
    const prober = await ServerProcess.start('lib/prober.js');
    try {
        const large = await Listed.open(join(folder, 'large'), prober, { meta: META, title: 'é'.repeat(500) });
        const small = await Listed.open(join(folder, 'small'), prober, { title: 'small' });
        for (let round = 0; round < ROUNDS; round++) {
            await large.round();
            await small.round();
        }
        const p99 = percentile(large.latencies, 0.99);
        const p99OfSmall = percentile(small.latencies, 0.99);
        console.log(`/healthz while ${CLIENTS} clients list ${SESSIONS} of the largest sessions, on disk: ` +
            `p50 ${format(percentile(large.latencies, 0.5))} ms, p99 ${format(p99)} ms = ${format(p99 / p99OfSmall)}x as long as ` +
            `beside small ones (${format(p99OfSmall)} ms)${verdict(p99, TARGET_MS, 'ms')}`);
        await Promise.all([large.close(), small.close()]);
    }
    finally {
        await prober.stop();
        await rm(folder, { recursive: true, force: true });
    }
}
/** A gateway with 200 sessions of one kind, clients that list them, and somebody else who asks whether it is alive. */
class Listed {
    latencies = [];
    #server;
    #url;
    #clients;
    #prober;
    #isWarm = false;
    constructor(server, url, clients, prober) {
        this.#server = server;
        this.#url = url;
        this.#clients = clients;
        this.#prober = prober;
    }
    static async open(folder, prober, session) {
        const server = await ServerProcess.start('servers/gateway.js', { argv: [JSON.stringify(OPTIONS), folder] });
        const url = await server.call('url');
        const clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawHttp.open(url)));
        const body = JSON.stringify({ cwd: tmpdir(), ...session });
        for (let n = 0; n < SESSIONS; n++) {
            const { status } = await clients[0].request('POST', '/v1/sessions', body);
            if (status !== 201)
                throw new Error(`a session was answered with ${status}`);
        }
        return new Listed(server, url, clients, prober);
    }
    async round() {
        await this.#prober.call('start', `${this.#url}/healthz`);
        await Promise.all(this.#clients.map((client) => this.#list(client)));
        const latencies = await this.#prober.call('stop');
        // the first one does not count
        if (this.#isWarm)
            this.latencies.push(...latencies);
        this.#isWarm = true;
    }
    async #list(client) {
        for (let page = 0; page < PAGES; page++) {
            const { status } = await client.request('GET', '/v1/sessions?limit=200');
            if (status !== 200)
                throw new Error(`a list was answered with ${status}`);
        }
    }
    async close() {
        for (const client of this.#clients)
            client.close();
        await this.#server.stop();
    }
}
//# sourceMappingURL=largest-lists.js.map