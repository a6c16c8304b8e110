/** A job is under way at another node, which alone can end it. */
export class JobElsewhere extends Error {
    name = 'JobElsewhere';
    node;
    constructor(id, node) {
        super(`The job ${id} is under way at the node ${node.name}.`);
        this.node = node;
    }
}
//# sourceMappingURL=elsewhere.js.map