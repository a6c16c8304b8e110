/** Numbers of one node are as far apart, so that those of others have room between them. */
const STRIDE = 1_000;
/**
 * Numbers that several nodes give by themselves: rising at each, roughly in the order of time over all, and never the same.
 * @param node its number
 * @param last the one before
 * @param now epoch milliseconds
 */
export function nextOf(node, last, now) {
    const rest = node % STRIDE;
    return Math.ceil((Math.max(last + 1, now * STRIDE) - rest) / STRIDE) * STRIDE + rest;
}
//# sourceMappingURL=node-numbers.js.map