import { GatewayError } from '../src/errors.js';
import { endUpgrade, isUpgrade } from './upgrades.js';
const RETRY_AFTER_S = 5;
/** Of the descriptors that a process may have, what is left for files, agents and webhooks is not given to clients. */
export function roomFor(descriptors) {
    const kept = Math.min(Math.max(256, descriptors / 8), descriptors / 2);
    const connections = Math.floor(descriptors - kept);
    return { connections, held: Math.floor((connections * 7) / 8) };
}
/**
 * For a server of our own: who would stay is refused while there are descriptors left to say so with. Without this the process runs out
 * of them, and then every new connection is reset, and no file is opened and no webhook delivered.
 */
export function limitConnections(app, descriptors, logger) {
    if (!Number.isFinite(descriptors))
        return;
    const { connections, held: most } = roomFor(descriptors);
    app.server.maxConnections = connections;
    const held = new Set();
    const onClose = function () {
        held.delete(this);
    };
    let isTold = false;
    app.addHook('onRequest', (request, reply, done) => {
        if (!stays(request))
            return done();
        const { socket } = request.raw;
        if (held.has(socket))
            return done();
        if (held.size < most) {
            held.add(socket);
            socket.once('close', onClose);
            isTold = false;
            return done();
        }
        if (!isTold)
            logger.warn({ held: most, descriptors }, 'new sockets and streams are refused: raise the limit of file descriptors (LimitNOFILE in the systemd unit)');
        isTold = true;
        endUpgrade(request, reply);
        done(new GatewayError('SG_ERR_TOO_MANY_CONNECTIONS', { retryAfterS: RETRY_AFTER_S }));
    });
}
const stays = (request) => isUpgrade(request) || (request.headers.accept?.includes('text/event-stream') ?? false);
//# sourceMappingURL=connections.js.map