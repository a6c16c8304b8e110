import { createServer, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { CLIENT_HEADER, HOP_HEADER, HopVerifier, } from '../src/cluster/hop-signature.js';
import { GatewayError } from '../src/errors.js';
import { newId } from '../src/lib/new-id.js';
import { answerClientError, problemOf } from './errors.js';
/** What came over the listener for nodes, and was signed: no header that a client can send makes a request one. */
const hops = new WeakMap();
const HEADERS_MS = 20_000;
/** Longer than what waits unused at the other end. */
const KEEP_ALIVE_MS = 75_000;
const CHECK_MS = 5_000;
const REFUSALS = {
    unsigned: { code: 'SG_ERR_HOP_REFUSED' },
    forged: { code: 'SG_ERR_HOP_REFUSED' },
    late: { code: 'SG_ERR_HOP_REFUSED', detail: 'The clocks of these nodes are more than 30 s apart.' },
    replayed: { code: 'SG_ERR_HOP_REFUSED' },
    misdirected: { code: 'SG_ERR_WRONG_NODE' },
};
/** The header by which a node says for whom it asks. What a proxy says of them may have anything in it. */
export const clientOf = ({ ip, protocol }) => [protocol || 'http', ip].map((part) => encodeURIComponent(part)).join(' ');
/** Undefined only without the header: whatever it says, somebody else than the node asks. */
function clientIn(header) {
    if (header === undefined)
        return undefined;
    const [protocol = '', address = ''] = header.split(' ').map(decoded);
    return { protocol, address };
}
function decoded(part) {
    try {
        return decodeURIComponent(part);
    }
    catch {
        return part;
    }
}
/**
 * Where other nodes ask: a listener of its own, that hands what they have signed to the routes of `to`, and nothing else.
 */
export class HopListener {
    #node;
    #gateway;
    #verifier;
    #server;
    /** Node does not close those that became WebSockets. */
    #connections = new Set();
    constructor(node, gateway, to) {
        this.#node = node;
        this.#gateway = gateway;
        this.#verifier = new HopVerifier(node.options.secrets, () => gateway.clock.now());
        const times = {
            headersTimeout: HEADERS_MS,
            // whoever sends the body is held to a time where they came in
            requestTimeout: 0,
            connectionsCheckingInterval: CHECK_MS,
            keepAliveTimeout: KEEP_ALIVE_MS,
        };
        const { tls } = node.options;
        this.#server = tls ? createTlsServer({ ...times, ...tls, requestCert: true }) : createServer(times);
        this.#server.on('tlsClientError', (error, socket) => {
            const told = { err: error, address: socket.remoteAddress };
            gateway.options.logger.warn(told, 'somebody was refused who has no certificate of cluster.tls.ca');
        });
        this.#server.on('request', (request, response) => {
            const refusal = this.#judge(request);
            if (!refusal)
                return void to.emit('request', request, response);
            const { status, body } = this.#problem(refusal);
            response
                .writeHead(status, { 'content-type': PROBLEM, 'cache-control': 'no-store', connection: 'close' })
                .end(body);
        });
        this.#server.on('upgrade', (request, connection, head) => {
            const refusal = this.#judge(request);
            if (!refusal)
                return void to.emit('upgrade', request, connection, head);
            const { status, body } = this.#problem(refusal);
            connection.on('error', () => connection.destroy());
            connection.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncache-control: no-store\r\ncontent-type: ${PROBLEM}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
        });
        this.#server.on('connection', (connection) => {
            this.#connections.add(connection);
            connection.once('close', () => this.#connections.delete(connection));
        });
        this.#server.on('clientError', answerClientError);
    }
    /** @returns the port */
    async listen() {
        const { host, port } = this.#node.options.listen;
        await new Promise((resolve, reject) => {
            this.#server.once('error', reject);
            this.#server.listen(port, host, () => {
                this.#server.off('error', reject);
                resolve();
            });
        });
        return this.#server.address().port;
    }
    async close() {
        await new Promise((resolve) => {
            this.#server.close(() => resolve());
            for (const connection of this.#connections)
                connection.destroy();
        });
    }
    /** Marks what is let in. */
    #judge(request) {
        const { method = '', url: path = '', headers } = request;
        const client = single(headers[CLIENT_HEADER]);
        const message = { method, path, authorization: headers.authorization, cookie: headers.cookie, client };
        const verdict = this.#verifier.verify(headers[HOP_HEADER], message, this.#node.self.n);
        if (typeof verdict !== 'string') {
            hops.set(request, { ...verdict, client: clientIn(client) });
            return undefined;
        }
        if (verdict !== 'misdirected')
            this.#gateway.options.logger.warn({ reason: verdict, address: request.socket.remoteAddress }, verdict === 'late'
                ? 'another node was refused: set the clocks of both machines'
                : 'somebody was refused who is not one of the nodes, or has another cluster.secret');
        return verdict;
    }
    #problem(refusal) {
        const { code, detail } = REFUSALS[refusal];
        const problem = problemOf(new GatewayError(code, detail === undefined ? {} : { detail }), newId());
        return { status: problem.status, body: JSON.stringify(problem) };
    }
}
const PROBLEM = 'application/problem+json; charset=utf-8';
const single = (header) => typeof header === 'object' ? header.join(', ') : header;
/** Tells hops from what pretends to be one. Before every other hook: what comes later asks who the client is. */
export function markHops(scope, { cluster }) {
    scope.decorateRequest('hop');
    if (!cluster)
        return;
    scope.addHook('onRequest', (request, _reply, done) => {
        const hop = hops.get(request.raw);
        if (!hop)
            return done(request.headers[HOP_HEADER] === undefined ? undefined : new GatewayError('SG_ERR_HOP_REFUSED'));
        request.hop = hop;
        if (hop.client) {
            const { address, protocol } = hop.client;
            Object.defineProperties(request, { ip: { value: address }, protocol: { value: protocol } });
        }
        done();
    });
}
//# sourceMappingURL=hops.js.map