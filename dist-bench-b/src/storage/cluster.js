/**
 * The other node that has something, or that it is left to: its home, as long as that is there. Undefined: it is this one's, or may be.
 * @param self this node's number and name
 */
export function keeperOf({ owner, home }, self, nodes) {
    if (owner)
        return owner.n === self.n ? undefined : owner;
    if (home === undefined || home === self.name)
        return undefined;
    return nodes.find(({ name, draining }) => name === home && !draining);
}
//# sourceMappingURL=cluster.js.map