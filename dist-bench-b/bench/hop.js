import { once } from 'node:events';
import { WebSocket } from 'ws';
import { format, median, percentile, verdict } from './lib/figures.js';
import { PostgresServer } from './lib/postgres-server.js';
import { RawHttp } from './lib/raw-http.js';
import { ServerProcess } from './lib/server-process.js';
const ROUNDS = 12;
const REQUESTS = 300;
const TARGETS = { get: 0.5, ping: 0.1 };
/** What it costs in time to ask a node for a session of another: a `GET` of it, and a ping on its socket. */
export async function hop() {
    const database = await PostgresServer.start();
    const nodes = await Promise.all(['a', 'b'].map((name) => ServerProcess.start('servers/node.js', { argv: [name, database.url] })));
    try {
        const [owner, other] = (await Promise.all(nodes.map((node) => node.call('url'))));
        const path = `/v1/sessions/${await nodes[0].call('createSession')}`;
        tell('GET of a session', await gets({ owner, other, path }), TARGETS.get);
        tell('ping on its socket', await pings({ owner, other, path }), TARGETS.ping);
    }
    finally {
        await Promise.all(nodes.map((node) => node.stop()));
        await database.stop();
    }
}
async function gets({ owner, other, path }) {
    const [direct, hop] = await Promise.all([RawHttp.open(owner), RawHttp.open(other)]);
    const get = async (connection) => {
        const { status, body } = await connection.request('GET', path);
        if (status !== 200)
            throw new Error(`GET ${path} is answered ${status}: ${body}`);
    };
    const times = await inTurn(() => get(direct), () => get(hop));
    for (const connection of [direct, hop])
        connection.close();
    return times;
}
async function pings({ owner, other, path }) {
    const open = async (url) => {
        const socket = new WebSocket(`${url.replace('http', 'ws')}${path}/ws`);
        await once(socket, 'open');
        return socket;
    };
    const [direct, hop] = await Promise.all([open(owner), open(other)]);
    const ping = (socket) => async () => {
        const pong = once(socket, 'pong');
        socket.ping();
        await pong;
    };
    const times = await inTurn(ping(direct), ping(hop));
    for (const socket of [direct, hop])
        socket.terminate();
    return times;
}
/** Milliseconds of each, in slices that take turns; the first of each does not count. */
async function inTurn(direct, hop) {
    const times = { direct: [], hop: [] };
    for (let round = 0; round <= ROUNDS; round++) {
        for (const [which, ask] of [['direct', direct], ['hop', hop]]) {
            for (let n = 0; n < REQUESTS; n++) {
                const start = performance.now();
                await ask();
                if (round > 0)
                    times[which].push(performance.now() - start);
            }
        }
    }
    return times;
}
function tell(what, { direct, hop }, target) {
    const [ofDirect, ofHop] = [median(direct), median(hop)];
    console.log(`${what}, asked at another node: p50 ${format(ofHop)} ms = ${format(ofHop / ofDirect)}x direct (${format(ofDirect)} ms), ` +
        `${format(ofHop - ofDirect)} ms more${verdict(ofHop - ofDirect, target, 'ms')}; ` +
        `p99 ${format(percentile(hop, 0.99))} ms, direct ${format(percentile(direct, 0.99))} ms`);
}
//# sourceMappingURL=hop.js.map