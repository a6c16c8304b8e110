import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskProbe } from './lib/disk-probe.js';
import { format, interleave, line, median } from './lib/figures.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const CONNECTIONS = 20;
const PAIRS_PER_SLICE = 8_000;
/** Fresh processes, since how V8 optimises one is settled soon after its start. */
const PROCESSES = 5;
const ROUNDS = 4;
const TARGET = 1.15;
const PLAIN_TARGET = 1.3;
const DURABLE_PAIRS_PER_SLICE = 1_500;
const DURABLE_TARGET = 1.5;
const BODY = JSON.stringify({ cwd: tmpdir(), permissionMode: 'default', title: 'A session', meta: { ticket: 'T-1' } });
/** CPU of the server to create a session over HTTP and to delete it again. */
export async function createDelete() {
    const toBare = { ours: [], baseline: [] };
    const toPlain = { ours: [], baseline: [] };
    for (let process = 0; process < PROCESSES; process++) {
        const { bare, plain } = await inFreshProcesses();
        for (const [all, some] of [[toBare, bare], [toPlain, plain]]) {
            all.ours.push(...some.ours);
            all.baseline.push(...some.baseline);
        }
    }
    const what = 'create and delete a session, CPU per pair';
    console.log(line(`${what}, beside Fastify with the gateway's parser and validators`, toBare, 'us', TARGET));
    console.log(line(`${what}, beside plain Fastify with Ajv`, toPlain, 'us', PLAIN_TARGET));
}
/** The same with sessions that are kept on disk, beside those that are not. */
export async function durableCreateDelete() {
    const folder = await mkdtemp(join(tmpdir(), 'bench-create-'));
    const disk = await DiskProbe.open(folder);
    const sqlite = await Api.open('servers/gateway.js', ['{}', folder]);
    const memory = await Api.open('servers/gateway.js');
    const toTransactions = [];
    const rates = [];
    const onDisk = async () => {
        const transactions = await disk.measure();
        const start = performance.now();
        const cpu = await sqlite.slice(DURABLE_PAIRS_PER_SLICE);
        rates.push((DURABLE_PAIRS_PER_SLICE / (performance.now() - start)) * 1000);
        toTransactions.push(rates.at(-1) / transactions);
        return cpu;
    };
    const cpu = await interleave(ROUNDS, onDisk, () => memory.slice(DURABLE_PAIRS_PER_SLICE));
    console.log(line('create and delete a session on disk, CPU per pair against memory', cpu, 'us', DURABLE_TARGET));
    console.log(`  ${format(median(rates))} pairs a second, ${format(median(toTransactions))} for each transaction a second that the disk allows`);
    console.log(`${disk}`);
    await Promise.all([sqlite.close(), memory.close(), disk.stop()]);
    await rm(folder, { recursive: true, force: true });
}
/** The gateway beside both baselines, the same slices of it beside each. */
async function inFreshProcesses() {
    const ours = await Api.open('servers/gateway.js');
    const bare = await Api.open('servers/bare-fastify.js');
    const plain = await Api.open('servers/bare-fastify.js', ['plain']);
    const ofPlain = [];
    const toBare = await interleave(ROUNDS, () => ours.slice(), async () => {
        ofPlain.push(await plain.slice());
        return bare.slice();
    });
    await Promise.all([ours.close(), bare.close(), plain.close()]);
    // the first of each is not counted
    return { bare: toBare, plain: { ours: toBare.ours, baseline: ofPlain.slice(1) } };
}
class Api {
    #server;
    #connections;
    constructor(server, connections) {
        this.#server = server;
        this.#connections = connections;
    }
    static async open(module, argv = []) {
        const server = await ServerProcess.start(module, { argv });
        const url = await server.call('url');
        return new Api(server, await Promise.all(Array.from({ length: CONNECTIONS }, () => RawHttp.open(url))));
    }
    /** Microseconds of server CPU per session. */
    async slice(pairs = PAIRS_PER_SLICE) {
        const spent = await this.#server.cpuOf(async () => {
            let left = pairs;
            const callers = this.#connections.map(async (connection) => {
                while (left-- > 0)
                    await createAndDelete(connection);
            });
            await Promise.all(callers);
        });
        return spent / pairs;
    }
    async close() {
        for (const connection of this.#connections)
            connection.close();
        await this.#server.stop();
    }
}
const ID = /"id":"([^"]+)"/;
async function createAndDelete(connection) {
    const created = await connection.request('POST', '/v1/sessions', BODY);
    const deleted = await connection.request('DELETE', `/v1/sessions/${ID.exec(created.body)?.[1]}`);
    if (created.status !== 201 || deleted.status !== 200)
        throw new Error(`create answered ${created.status}, delete ${deleted.status}`);
}
//# sourceMappingURL=create-delete.js.map