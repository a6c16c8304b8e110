import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { encodeTextFrame } from '../../src/sessions/log/log-segments.js';
import { answer } from '../lib/child.js';
import { Producer } from '../lib/producer.js';
import { sessionInfo } from './session-info.js';
/** What one would write with `ws` alone when only speed counts: no sessions, no replay from a place, no limit for a slow reader. */
const SLICE_BYTES = 64 * 1024;
class BareStream {
    clients = new Set();
    producer = new Producer((event) => this.#append(event));
    /** What is held for replay, in slices as they are sent. */
    slices = [];
    #seq = 0;
    #piledUp = [];
    #append(event) {
        const json = JSON.stringify({ type: 'event', event: { seq: ++this.#seq, ts: Date.now(), ...event } });
        if (this.#piledUp.push(encodeTextFrame(json)) === 1)
            setImmediate(() => this.#flush());
    }
    /** The frames of one turn in one write per client. */
    #flush() {
        const frames = Buffer.concat(this.#piledUp);
        this.#piledUp = [];
        for (const client of this.clients)
            client.write(frames);
    }
    /** Holds that many events for replay. */
    async fill(events) {
        const frames = [];
        this.clients.add({ write: (joined) => frames.push(joined) });
        await this.producer.produce({ events, perTurn: 100, window: Infinity });
        await new Promise(setImmediate);
        this.clients.clear();
        const all = Buffer.concat(frames);
        for (let at = 0; at < all.length; at += SLICE_BYTES)
            this.slices.push(all.subarray(at, at + SLICE_BYTES));
    }
}
const streams = new Map();
let echoed = '';
const http = createServer((_request, response) => {
    response
        .writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
        .end(JSON.stringify(sessionInfo('idle')));
});
const server = new WebSocketServer({ server: http, perMessageDeflate: false });
server.on('connection', (ws, request) => {
    const socket = ws._socket;
    const [, kind, id] = request.url.split('/');
    ws.on('error', () => { });
    if (kind === 'echo') {
        ws.on('message', () => ws.send(echoed));
        return;
    }
    const stream = streams.get(id);
    if (kind === 'replay')
        replay(socket, stream.slices);
    else
        stream.clients.add(socket);
    ws.on('close', () => stream.clients.delete(socket));
});
function replay(socket, slices) {
    let next = 0;
    const pump = () => {
        while (next < slices.length)
            if (!socket.write(slices[next++]))
                return;
    };
    socket.on('drain', pump);
    pump();
}
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${http.address().port}`;
answer({
    url: () => url,
    socketUrl: (id) => `${url}/live/${id}`,
    replayUrl: (id) => `${url}/replay/${id}`,
    createSession() {
        const id = randomUUID();
        streams.set(id, new BareStream());
        return id;
    },
    fill: ({ id, events }) => streams.get(id).fill(events),
    produce: ({ id, ...work }) => streams.get(id).producer.produce(work),
    taken: ({ id, events }) => streams.get(id).producer.taken(events),
    pace: ({ id, ...rate }) => streams.get(id).producer.pace(rate),
    echo({ bytes }) {
        echoed = 'x'.repeat(bytes);
    },
});
//# sourceMappingURL=bare-ws.js.map