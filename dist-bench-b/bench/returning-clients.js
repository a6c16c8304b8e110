import { format, median } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const CLIENTS = 20;
const PER_SECOND = 4_000;
const SECONDS = 5;
const ROUNDS = 3;
/** How long a client stays, and how long it is away, at random up to that. */
const STAYS_MS = 400;
const AWAY_MS = 150;
/** "On time": the last client has everything this soon after the last event. */
const LATEST_MS = 1_000;
/**
 * Clients that drop and return while events go on: every one ends with every event exactly once. The baseline is the same run with
 * clients that stay.
 */
export async function returningClients() {
    const returning = [];
    const staying = [];
    for (let round = 0; round < ROUNDS; round++) {
        returning.push(await run(true));
        staying.push(await run(false));
    }
    const of = (outcomes, what) => median(outcomes.map((one) => one[what]));
    const latest = Math.max(...returning.map((one) => one.lateMs));
    const cpu = of(returning, 'cpuMs');
    const cpuStaying = of(staying, 'cpuMs');
    console.log(`${CLIENTS} clients that drop and return under ${PER_SECOND} events/s for ${SECONDS} s: ${format(of(returning, 'drops'))} drops, ` +
        'every event exactly once; ' +
        `CPU ${format(cpu)} ms = ${format(cpu / cpuStaying)}x the baseline's ${format(cpuStaying)} ms; all at the end ` +
        `${format(of(returning, 'lateMs'))} ms after the last event (worst ${format(latest)}), baseline ${format(of(staying, 'lateMs'))} ms` +
        `  [target: on time, ${LATEST_MS} ms: ${latest <= LATEST_MS ? 'met' : 'MISSED'}]`);
}
async function run(returns) {
    const server = await ServerProcess.start('servers/gateway.js');
    const id = await server.call('createSession');
    const url = await server.call('socketUrl', id);
    const clients = Array.from({ length: CLIENTS }, () => new Reader(url, returns));
    await Promise.all(clients.map((client) => client.connect()));
    let lateMs = 0;
    const spent = await server.cpuOf(async () => {
        const made = await server.call('pace', { id, perSecond: PER_SECOND, seconds: SECONDS });
        const lastMadeAt = performance.now();
        await Promise.all(clients.map((client) => client.until(made)));
        lateMs = performance.now() - lastMadeAt;
    });
    for (const client of clients)
        client.end();
    await server.stop();
    return { cpuMs: spent / 1000, lateMs, drops: clients.reduce((sum, client) => sum + client.drops, 0) };
}
const SEQ = /^\{"type":"event","event":\{"seq":(\d+),/;
/** The engine's first words and the status they lead to, which come before the events that are counted. */
const BEFORE = 2;
/** A client as the contract wants it: it remembers the last seq it has seen and comes back with it. */
class Reader {
    drops = 0;
    #lastSeq = 0;
    #url;
    #returns;
    #socket;
    #timer;
    #ended = false;
    #goal = Infinity;
    #onGoal;
    constructor(url, returns) {
        this.#url = url;
        this.#returns = returns;
    }
    async connect() {
        this.#socket = await RawSocket.open(`${this.#url}?afterSeq=${this.#lastSeq}`, {
            onText: (text) => this.#onText(text),
        });
        if (this.#returns)
            this.#timer = setTimeout(() => this.#drop(), Math.random() * STAYS_MS);
    }
    /** Resolves when that many events have been seen. */
    until(events) {
        return new Promise((resolve) => {
            this.#onGoal = resolve;
            this.#goal = BEFORE + events;
            this.#look();
        });
    }
    end() {
        this.#ended = true;
        clearTimeout(this.#timer);
        this.#socket?.drop();
    }
    #onText(text) {
        const match = SEQ.exec(text.toString('latin1', 0, 60));
        if (!match)
            return;
        const seq = Number(match[1]);
        if (seq !== this.#lastSeq + 1)
            throw new Error(`after seq ${this.#lastSeq} came ${seq}`);
        this.#lastSeq = seq;
        this.#look();
    }
    #look() {
        if (this.#lastSeq >= this.#goal)
            this.#onGoal?.();
    }
    #drop() {
        this.#socket?.drop();
        this.drops++;
        this.#timer = setTimeout(() => {
            this.connect().catch((error) => {
                // at the end the server goes, whoever is about to come
                if (!this.#ended)
                    throw error;
            });
        }, Math.random() * AWAY_MS);
    }
}
//# sourceMappingURL=returning-clients.js.map