import { Server as TlsServer } from 'node:tls';
/** As long may an upgrade take, and its refusal stay unread. */
const UPGRADE_MS = 60_000;
const UPGRADE_TOKEN = /(?:^|,)\s*upgrade\s*(?=,|$)/gi;
/** Connections of one server that asked for a WebSocket and are none yet. Node neither times them out nor closes them with the server. */
export class Upgrades {
    #connections = new Set();
    #onClose;
    constructor() {
        const connections = this.#connections;
        this.#onClose = function () {
            connections.delete(this);
        };
    }
    add(connection) {
        this.#connections.add(connection);
        connection.on('error', destroy);
        // a socket that is accepted has no such limit
        connection.setTimeout?.(UPGRADE_MS);
        connection.on('timeout', destroy);
        connection.on('close', this.#onClose);
    }
    /** Somebody else looks after it from now on. */
    release(connection) {
        this.#connections.delete(connection);
        connection.off('error', destroy);
        connection.off('timeout', destroy);
        connection.off('close', this.#onClose);
    }
    endAll() {
        for (const connection of this.#connections)
            connection.destroy();
    }
}
const destroy = function () {
    this.destroy();
};
/** What came behind the head of a request that asks for a WebSocket. */
const heads = new WeakMap();
export const readAhead = (request) => heads.get(request);
/** By server that a gateway's plugin listens to. */
const upgradesOf = new WeakMap();
/** Whether Node hands over the connection of this request: for a WebSocket, the one protocol that is spoken here. */
export const isUpgrade = ({ raw: { headers } }) => asksForSocket(headers.upgrade) && (headers.connection ?? '').search(UPGRADE_TOKEN) >= 0;
const asksForSocket = (protocol) => protocol?.trim().toLowerCase() === 'websocket';
/**
 * Once per server: an `Upgrade` to anything but `websocket` is ignored (RFC 9110, 7.8), so that who offers `h2c` is answered by the
 * routes, the host's too; and a connection that Node hands over, neither timed out nor closed with the server any more, has an end.
 */
export function ownUpgrades(server) {
    const known = upgradesOf.get(server);
    if (known)
        return known;
    const upgrades = new Upgrades();
    upgradesOf.set(server, upgrades);
    decideUpgrades(server);
    const emit = server.emit;
    // the only place before every listener, those of the host included, and of its other addresses
    server.emit = function (event, ...args) {
        if (event !== 'upgrade')
            return Reflect.apply(emit, this, [event, ...args]);
        const [request, connection, head] = args;
        const goOn = () => {
            if (asksForSocket(request.headers.upgrade))
                return Reflect.apply(emit, this, [event, ...args]);
            upgrades.release(connection);
            return replayPlain(this, request, connection, head);
        };
        upgrades.add(connection);
        if (head.length > 0)
            heads.set(request, head);
        onceAnswered(connection, goOn);
        return true;
    };
    return upgrades;
}
function decideUpgrades(server) {
    const { shouldUpgradeCallback } = server;
    if (typeof shouldUpgradeCallback !== 'function')
        return;
    server.shouldUpgradeCallback = (request) => asksForSocket(request.headers.upgrade) && shouldUpgradeCallback.call(server, request);
}
/** Requests that came before on the same connection are answered first. */
function onceAnswered(connection, then) {
    const answer = connection._httpMessage;
    if (answer)
        answer.once('close', () => onceAnswered(connection, then));
    else if (!connection.destroyed)
        then();
}
/** Gives a connection back to the server, its request written anew without the wish to upgrade. */
function replayPlain(server, request, connection, head) {
    const { method, url, httpVersion, rawHeaders } = request;
    const lines = [`${method} ${url} HTTP/${httpVersion}`];
    for (let at = 0; at < rawHeaders.length; at += 2) {
        const name = rawHeaders[at];
        const value = rawHeaders[at + 1];
        lines.push(`${name}: ${name.toLowerCase() === 'connection' ? withoutUpgrade(value) : value}`);
    }
    connection.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
    // that of the address which it came in by
    const owner = connection.server ?? server;
    owner.emit(owner instanceof TlsServer ? 'secureConnection' : 'connection', connection);
}
const withoutUpgrade = (connection) => connection.replace(UPGRADE_TOKEN, '').replace(/^\s*,/, '');
/** What answers an upgrade as any request ends the connection that Node handed over for it, and says so: nobody else would. */
export function endUpgrades(fastify) {
    fastify.addHook('onRequest', (request, reply, done) => {
        endUpgrade(request, reply);
        done();
    });
}
export function endUpgrade(request, reply) {
    if (!isUpgrade(request))
        return;
    const { socket } = reply.raw;
    reply.header('connection', 'close');
    reply.raw.once('finish', () => socket?.destroySoon());
}
//# sourceMappingURL=upgrades.js.map