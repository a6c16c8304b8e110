import { createHash } from 'node:crypto';
import { HopClient } from './hop-client.js';
import { OwnNode } from './own-node.js';
/** This process's place among others; undefined where it is alone. */
export function joinCluster(options, { clock, logger, prefix = '' }) {
    const { cluster, storage } = options;
    if (!cluster || !storage?.cluster)
        return undefined;
    const { cluster: shared } = storage;
    const hops = new HopClient({ secret: cluster.secrets[0], clock, from: () => shared.n, tls: cluster.tls });
    return new OwnNode({
        ...{ options: cluster, storage: shared, hops, clock, logger },
        slots: options.queue ? (options.queue.maxConcurrency ?? 1) : 0,
        digest: digestOf(options, prefix),
    });
}
/** Of what callers would notice when it is not the same at every node. */
function digestOf({ cluster, ...options }, prefix) {
    const { profiles, executions, basePath, maxBodyBytes, requireApiKey, disableBypassPermissions } = options;
    const shared = {
        ...{ path: `${prefix}${basePath}`, profiles, maxBodyBytes, requireApiKey, disableBypassPermissions },
        ...{ tools: executions?.tools, agentState: cluster?.agentState },
    };
    return createHash('sha256').update(JSON.stringify(shared)).digest('hex').slice(0, 16);
}
//# sourceMappingURL=join.js.map