import { EventEmitter } from 'node:events';
import websocket from '@fastify/websocket';
import WebSocket from 'ws';
import { closeRow } from '../schemas/close-codes.js';
import { ownUpgrades } from './upgrades.js';
/** Every close carries a reason, those that `ws` decides on too. */
class ReasonedWebSocket extends WebSocket {
    close(code, reason) {
        super.close(code, reason ?? closeRow(code)?.reason);
    }
}
const ours = new WeakSet();
/** Servers whose upgrades one of ours hands to the router. */
const dispatched = new WeakSet();
/**
 * Lets the routes of a scope be sockets. The plugin stands in that scope alone: its hooks and wrappers are nothing to other routes, ours
 * or the host's. A host may have brought its own before; one that comes later would answer every upgrade a second time, and is refused.
 */
export async function openToWebSockets(host, scope, { options }) {
    const { server } = host;
    const upgrades = ownUpgrades(server);
    if (host.hasDecorator('websocketServer') && !ours.has(host.websocketServer)) {
        host.websocketServer.on('connection', (_socket, { socket }) => upgrades.release(socket));
        host.addHook('preClose', async () => upgrades.endAll());
        return;
    }
    const isDispatched = dispatched.has(server);
    dispatched.add(server);
    await scope.register(websocket, {
        options: {
            maxPayload: options.maxBodyBytes,
            perMessageDeflate: false,
            // its types differ between the module systems
            WebSocket: ReasonedWebSocket,
            // one of them hands every upgrade to the router; a second one would do so again
            ...(isDispatched && { server: new EventEmitter() }),
        },
        // ours have been told to go away by then; closing the rest at once keeps close() from waiting for clients
        preClose(done) {
            for (const client of this.websocketServer.clients)
                client.terminate();
            upgrades.endAll();
            this.websocketServer.close();
            done();
        },
    });
    scope.websocketServer.on('connection', (_socket, { socket }) => upgrades.release(socket));
    ours.add(scope.websocketServer);
    if (!host.hasDecorator('websocketServer'))
        host.decorate('websocketServer', scope.websocketServer);
    host.addHook('onRoute', ({ url, websocket, wsHandler, config }) => {
        if ((websocket || wsHandler) && !config?.socket)
            throw new Error(`${url} is a WebSocket of its own: register @fastify/websocket before the gateway.`);
    });
}
/**
 * What a client does to its connection, frames that are none included, is no error of ours: the close code tells it, and a line for who
 * looks closely. The listener that was set with the socket would report it as one.
 */
export function expectBadFrames(socket, { log }) {
    socket.removeAllListeners('error');
    socket.on('error', (error) => log.debug({ code: error.code, reason: error.message }, 'a client broke its connection'));
}
//# sourceMappingURL=sockets.js.map