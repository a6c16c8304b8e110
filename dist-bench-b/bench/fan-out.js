import { interleave, line } from './lib/figures.js';
import { Flock } from './lib/flock.js';
import { ServerProcess } from './lib/server-process.js';
const CLIENTS = [1, 10, 100, 500];
const TARGET = 1.3;
const ROUNDS = 11;
const PER_TURN = 10;
/** Deliveries of one slice: enough to last some hundred milliseconds. */
const DELIVERIES = 500_000;
const DELIVERIES_TO_ONE = 50_000;
/** `attached`, `system_init`, `status_changed`, `synced`. */
const GREETING = 4;
/** CPU of the server per event and client, with every client at the head of the log. */
export async function fanOut() {
    for (const clients of CLIENTS) {
        const ours = await Stage.open('servers/gateway.js', clients, GREETING);
        const bare = await Stage.open('servers/bare-ws.js', clients, 0);
        const paired = await interleave(ROUNDS, () => ours.slice(), () => bare.slice());
        const target = clients === 1 ? undefined : TARGET;
        console.log(line(`fan-out to ${clients}, CPU per delivered event`, paired, 'us', target));
        await Promise.all([ours.close(), bare.close()]);
    }
}
/** One server with one session and its clients. */
class Stage {
    #server;
    #session;
    #clients;
    #flock;
    /** Events that may be on their way: with one client more, or the calls between the processes would be what is measured. */
    #window;
    #perSlice;
    #left = 0;
    #arrived;
    constructor(server, session, clients) {
        this.#server = server;
        this.#session = session;
        this.#clients = clients;
        this.#window = clients === 1 ? 1_000 : 200;
        const deliveries = clients === 1 ? DELIVERIES_TO_ONE : DELIVERIES;
        this.#perSlice = Math.ceil(deliveries / clients / this.#window) * this.#window;
        this.#flock = new Flock(clients, this.#window / 2, () => this.#onTaken(this.#window / 2));
    }
    static async open(module, clients, greeting) {
        const server = await ServerProcess.start(module);
        const session = await server.call('createSession');
        const stage = new Stage(server, session, clients);
        await stage.#flock.open(await server.call('socketUrl', session), greeting);
        return stage;
    }
    #onTaken(events) {
        this.#server.tell('taken', { id: this.#session, events });
        this.#left -= events;
        if (this.#left === 0)
            this.#arrived?.();
    }
    /** Microseconds of server CPU per delivered event. */
    async slice() {
        this.#left = this.#perSlice;
        const spent = await this.#server.cpuOf(async () => {
            const arrived = new Promise((resolve) => {
                this.#arrived = resolve;
            });
            await this.#server.call('produce', {
                id: this.#session,
                events: this.#perSlice,
                perTurn: PER_TURN,
                window: this.#window,
            });
            await arrived;
        });
        return spent / this.#perSlice / this.#clients;
    }
    async close() {
        this.#flock.drop();
        await this.#server.stop();
    }
}
//# sourceMappingURL=fan-out.js.map