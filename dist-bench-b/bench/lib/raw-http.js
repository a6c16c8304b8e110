import { connect } from 'node:net';
const HEAD_END = Buffer.from('\r\n\r\n');
/**
 * One kept-alive connection that sends a request after the other and does as little else as can be done: the server has to be what
 * limits the rate, in both runs that are compared, or the one that is faster would also find its client awake more often.
 */
export class RawHttp {
    #socket;
    #host;
    #buffered = Buffer.alloc(0);
    #answered;
    constructor(socket, host) {
        this.#socket = socket;
        this.#host = host;
        socket.on('data', (bytes) => this.#onBytes(bytes));
    }
    static open(url) {
        const { hostname, port, host } = new URL(url);
        return new Promise((resolve, reject) => {
            const socket = connect({ host: hostname, port: Number(port), noDelay: true });
            socket.once('error', reject);
            socket.once('connect', () => resolve(new RawHttp(socket, host)));
        });
    }
    request(method, path, json) {
        const body = json === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n`;
        this.#socket.write(`${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${body}\r\n${json ?? ''}`);
        return new Promise((resolve) => {
            this.#answered = resolve;
        });
    }
    #onBytes(bytes) {
        const all = this.#buffered.length > 0 ? Buffer.concat([this.#buffered, bytes]) : bytes;
        const headEnd = all.indexOf(HEAD_END);
        const head = headEnd === -1 ? '' : all.toString('latin1', 0, headEnd);
        const bodyStart = headEnd + HEAD_END.length;
        const bodyEnd = bodyStart + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Infinity);
        if (headEnd === -1 || all.length < bodyEnd) {
            this.#buffered = Buffer.from(all);
            return;
        }
        this.#buffered = Buffer.alloc(0);
        this.#answered?.({ status: Number(head.slice(9, 12)), body: all.toString('latin1', bodyStart, bodyEnd) });
    }
    close() {
        this.#socket.destroy();
    }
}
//# sourceMappingURL=raw-http.js.map