import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { askNow, QUIET_MS } from '../lib/ask.js';
import { answer } from '../lib/child.js';
/** The same request with `ws` alone: it is sent as it is made. */
const http = createServer();
const server = new WebSocketServer({ server: http, perMessageDeflate: false });
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
let seq = 0;
answer({
    socketUrl: () => `http://127.0.0.1:${http.address().port}/`,
    async ask() {
        await setTimeout(QUIET_MS);
        const request = { id: randomUUID(), ...askNow(), expiresAt: Date.now() };
        const event = { seq: ++seq, ts: Date.now(), type: 'permission_requested', request };
        const text = JSON.stringify({ type: 'event', event });
        for (const client of server.clients)
            client.send(text);
    },
});
//# sourceMappingURL=asking-ws.js.map