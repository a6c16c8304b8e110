import { guardUpgrades } from './edge.js';
import { sendProblem } from './errors.js';
/**
 * `GET /healthz`: the process is alive. `GET /readyz`: it takes work; 503 before it started, while it drains and while its storage takes
 * nothing.
 */
export const health = async (scope, { gateway }) => {
    scope.setErrorHandler(sendProblem);
    guardUpgrades(scope, gateway);
    scope.get('/healthz', { logLevel: 'warn' }, async () => ({ status: 'ok' }));
    scope.get('/readyz', { logLevel: 'warn' }, async (_request, reply) => {
        if (gateway.ready)
            return { status: 'ready' };
        return reply.code(503).send({ status: notReady(gateway) });
    });
};
function notReady({ draining, writable, standing }) {
    if (draining)
        return 'draining';
    if (standing?.isLost)
        return 'lost';
    return writable ? 'starting' : 'storage_unavailable';
}
//# sourceMappingURL=health.js.map