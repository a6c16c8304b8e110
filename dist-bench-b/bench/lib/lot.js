import { RawHttp } from './raw-http.js';
import { RawSocket } from './raw-socket.js';
import { ServerProcess } from './server-process.js';
const RESULT = JSON.stringify({ status: 'ok', output: { type: 'json', value: { url: 'https://example.com/report' } } });
/** The client of a server whose sessions wait for a result each. */
export class Lot {
    #server;
    #connections;
    #url;
    constructor(server, connections, url) {
        this.#server = server;
        this.#connections = connections;
        this.#url = url;
    }
    /** @param connections over which results are posted */
    static async open(module, argv, connections = 1) {
        const server = await ServerProcess.start(module, { argv });
        const url = await server.call('url');
        return new Lot(server, await Promise.all(Array.from({ length: connections }, () => RawHttp.open(url))), url);
    }
    /** Milliseconds from a result to the first event of the session that it wakes, one session after the other. */
    async wakes(count) {
        const times = [];
        for (const id of await this.#server.call('park', count)) {
            const watched = await this.#watch(id);
            times.push(await this.#wake(watched, this.#connections[0]));
            watched.socket.drop();
        }
        return times;
    }
    /** Results for as many sessions as there are connections, at once. @returns how many a second were woken */
    async wakesAtOnce() {
        const ids = await this.#server.call('park', this.#connections.length);
        const watched = await Promise.all(ids.map((id) => this.#watch(id)));
        const start = performance.now();
        await Promise.all(watched.map((one, index) => this.#wake(one, this.#connections[index])));
        const took = performance.now() - start;
        for (const { socket } of watched)
            socket.drop();
        return (watched.length / took) * 1000;
    }
    async #watch(id) {
        let onText = () => { };
        const told = (mark) => new Promise((resolve) => {
            onText = (text) => text.includes(mark) && resolve();
        });
        const synced = told('"type":"synced"');
        const socket = await RawSocket.open(`${this.#url}/v1/sessions/${id}/ws`, { onText: (text) => onText(text) });
        await synced;
        return { id, socket, nextEvent: () => told('"type":"event"') };
    }
    async #wake({ id, nextEvent }, http) {
        const woken = nextEvent();
        const start = performance.now();
        const answer = http.request('POST', `/v1/executions/${id}-e/result`, RESULT);
        await woken;
        const time = performance.now() - start;
        const { status, body } = await answer;
        if (status !== 200 || !body.includes('"applied":true'))
            throw new Error(`the result was answered ${status} ${body}`);
        return time;
    }
    async stop() {
        for (const connection of this.#connections)
            connection.close();
        await this.#server.stop();
    }
}
//# sourceMappingURL=lot.js.map