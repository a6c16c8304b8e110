import { format, interleave, line, median, percentile } from './lib/figures.js';
import { RawSocket } from './lib/raw-socket.js';
import { ServerProcess } from './lib/server-process.js';
const TRIPS = 4_000;
const ROUNDS = 9;
/**
 * From the request for permission seen to its answer seen to have taken effect: the decision goes over the socket, the engine goes on,
 * and `permission_resolved` comes back. The baseline echoes one message of the same size for each.
 */
export async function permissionRoundTrip() {
    const ours = await Asker.open();
    // one trip tells the sizes
    await ours.trips(10);
    const bare = await Echo.open(ours.bytesPerTrip);
    const paired = await interleave(ROUNDS, () => ours.slice(), () => bare.slice());
    console.log(line('permission round trip, CPU', paired, 'us'));
    const [p50, p50OfBare] = [median(ours.latencies), median(bare.latencies)];
    const [p99, p99OfBare] = [percentile(ours.latencies, 0.99), percentile(bare.latencies, 0.99)];
    console.log(`  time: p50 ${format(p50)} ms = ${format(p50 / p50OfBare)}x the baseline's ${format(p50OfBare)} ms, ` +
        `p99 ${format(p99)} ms = ${format(p99 / p99OfBare)}x the baseline's ${format(p99OfBare)} ms`);
    await Promise.all([ours.close(), bare.close()]);
}
const decisionOn = (requestId, n) => JSON.stringify({ type: 'permission_decision', id: `decision-${n}`, requestId, behavior: 'allow' });
class Caller {
    /** Milliseconds of each trip. */
    latencies = [];
    socket;
    server;
    #left = 0;
    #done;
    #sentAt = 0;
    constructor(server) {
        this.server = server;
    }
    begin() {
        this.#sentAt = performance.now();
        this.send();
    }
    seen() {
        this.latencies.push(performance.now() - this.#sentAt);
        this.#left--;
    }
    next() {
        if (this.#left > 0)
            this.begin();
        else
            this.#done?.();
    }
    trips(count) {
        this.#left = count;
        return new Promise((resolve) => {
            this.#done = resolve;
            this.begin();
        });
    }
    /** Microseconds of server CPU per trip. */
    async slice() {
        return (await this.server.cpuOf(() => this.trips(TRIPS))) / TRIPS;
    }
    async close() {
        this.socket.drop();
        await this.server.stop();
    }
}
class Asker extends Caller {
    #requestId = '';
    #trips = 0;
    #bytes = 0;
    #sawRequest;
    static async open() {
        const server = await ServerProcess.start('servers/gateway.js');
        const asker = new Asker(server);
        const id = await server.call('createAskingSession');
        const url = await server.call('socketUrl', id);
        const asked = new Promise((resolve) => {
            asker.#sawRequest = resolve;
        });
        asker.socket = await RawSocket.open(url, { onText: (text) => asker.#onFrame(text) });
        await asked;
        asker.#sawRequest = undefined;
        return asker;
    }
    /** Of everything that one trip brings, the next request included. */
    get bytesPerTrip() {
        return Math.round(this.#bytes / this.#trips);
    }
    send() {
        this.socket.send(decisionOn(this.#requestId, ++this.#trips));
    }
    #onFrame(text) {
        this.#bytes += text.length;
        const frame = JSON.parse(text.toString());
        if (frame.type === 'command_error')
            throw new Error(text.toString());
        if (frame.event?.type === 'permission_resolved')
            this.seen();
        if (frame.event?.type !== 'permission_requested')
            return;
        this.#requestId = frame.event.request.id;
        if (this.#sawRequest)
            this.#sawRequest();
        else
            this.next();
    }
}
class Echo extends Caller {
    static async open(bytes) {
        const server = await ServerProcess.start('servers/bare-ws.js');
        await server.call('echo', { bytes });
        const echo = new Echo(server);
        echo.socket = await RawSocket.open(`${await server.call('url')}/echo`, {
            onText: () => {
                echo.seen();
                echo.next();
            },
        });
        return echo;
    }
    send() {
        this.socket.send(decisionOn('00000000-0000-0000-0000-000000000000', 1_000));
    }
}
//# sourceMappingURL=permission-round-trip.js.map