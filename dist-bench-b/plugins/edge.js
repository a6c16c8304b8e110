import { GatewayError } from '../src/errors.js';
import { ownOrigins } from './origins.js';
import { isUpgrade } from './upgrades.js';
/** Serves only the hosts that are allowed, so that a name which an attacker points here reaches nothing. */
export function guardHost(scope, { options }) {
    const { allowedHosts } = options;
    if (!allowedHosts)
        return;
    const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
    scope.addHook('onRequest', (request, _reply, done) => {
        // judged by the node that it came to first
        if (request.hop)
            return done();
        const host = request.raw.headers.host?.toLowerCase() ?? '';
        const isAllowed = allowed.has(host) || allowed.has(withoutPort(host));
        done(isAllowed ? undefined : new GatewayError('SG_ERR_HOST_REFUSED'));
    });
}
const withoutPort = (host) => host.replace(/:\d+$/, '');
/** Settles an upgrade before the 101: where from, to what, and whether it is the handshake of a WebSocket at all. */
export function guardUpgrades(scope, gateway) {
    const { allowedOrigins = [], cors } = gateway.options;
    const listed = new Set([...allowedOrigins, ...(cors?.origins ?? [])]);
    const isOwn = ownOrigins(gateway);
    // absent: no browser
    const isAllowed = (request) => {
        const { origin } = request.headers;
        return origin === undefined || listed.has(origin) || isOwn(request);
    };
    scope.addHook('onRequest', (request, _reply, done) => done(isUpgrade(request) ? upgradeRefusal(request, request.hop !== undefined || isAllowed(request)) : undefined));
}
/** A route that is a socket serves nothing else. */
export function requireUpgrade(scope) {
    scope.addHook('onRequest', (request, _reply, done) => {
        const isMissing = request.routeOptions.config.socket && !isUpgrade(request);
        done(isMissing ? new GatewayError('SG_ERR_UPGRADE_REQUIRED') : undefined);
    });
}
function upgradeRefusal(request, isAllowed) {
    const { socket } = request.routeOptions.config;
    if (!isAllowed)
        return new GatewayError('SG_ERR_ORIGIN_REFUSED');
    if (!socket)
        return new GatewayError('SG_ERR_BAD_REQUEST', { detail: 'This path is no WebSocket.' });
    if (!isHandshake(request))
        return new GatewayError('SG_ERR_BAD_REQUEST', { detail: 'This is no handshake of a WebSocket of version 13.' });
    return undefined;
}
/** What `ws` would refuse by itself, in a form of its own. */
const isHandshake = ({ method, headers }) => method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '');
//# sourceMappingURL=edge.js.map