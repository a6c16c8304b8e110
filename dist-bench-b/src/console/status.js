import { VERSION } from '../lib/package-root.js';
/** How a gateway is, for who operates it. */
export async function statusOf(gateway) {
    const { registry, cliProfiles, deliverer, writable, startedAt, options } = gateway;
    return {
        version: VERSION,
        node: process.versions.node,
        startedAt,
        storage: { outlasts: options.storage !== undefined, writable },
        sessions: registry.count(),
        agents: await cliProfiles.installed(),
        webhooks: gateway.webhooks().map((target) => stateOf(target, deliverer)),
        deliveries: { pending: deliverer.pending, ...deliverer.counts },
    };
}
function stateOf(target, deliverer) {
    const failure = deliverer.failing.of(target);
    const state = deliverer.isGone(target) ? 'gone' : failure ? 'failing' : 'ok';
    return { name: target.name ?? '', origin: new URL(target.url).origin, state, ...failure };
}
//# sourceMappingURL=status.js.map