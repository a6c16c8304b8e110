/** Kinds of what a node owns, in the order in which a taker takes them up. */
export const TAKEN_KINDS = ['lanes', 'sessions', 'jobs', 'reminders', 'keys'];
/** Another node did not answer. */
export class NodeUnreachable extends Error {
    name = 'NodeUnreachable';
    node;
    /** Whether it cannot have begun with what it was asked for. */
    unsent;
    constructor(node, unsent, cause) {
        super(`The node ${node.name} cannot be reached.`, { cause });
        this.node = node;
        this.unsent = unsent;
    }
}
//# sourceMappingURL=cluster.js.map