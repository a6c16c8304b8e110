import { canCarry } from '../engines/cli/index.js';
import { refusing } from '../storage/availability.js';
/** Undefined where one process has all sessions. */
export function sharingOf({ cluster, storage, agents }) {
    if (!cluster || !storage?.cluster)
        return undefined;
    const { node, agentState } = cluster;
    const shared = { storage: refusing(storage.cluster), node };
    if (agentState === 'shared')
        return shared;
    const goesAnywhere = (profile) => profile.engine !== 'cli' || (agentState === 'copied' && canCarry(agents, profile));
    return { ...shared, homes: { node, of: (profile) => (goesAnywhere(profile) ? undefined : node) } };
}
//# sourceMappingURL=sharing.js.map