import { USAGE_NUMBERS } from '../../schemas/usage.js';
/** What all rows have that are counted, in the order in which they are kept. */
export const COUNTED = [...USAGE_NUMBERS, 'costUsd'];
/** Of this one the greatest is kept. */
export const GREATEST = 'approvalWaitMaxMs';
/** Nothing yet. */
export const emptySum = () => Object.fromEntries(COUNTED.map((name) => [name, 0]));
export function addTo(sum, count) {
    for (const name of COUNTED) {
        const more = count[name];
        if (more === undefined)
            continue;
        sum[name] = name === GREATEST ? Math.max(sum[name], more) : sum[name] + more;
    }
}
/** In the order of the parts that they are summed by. */
export const inOrder = (by) => (a, b) => {
    for (const group of by) {
        const [left, right] = [a[group] ?? '', b[group] ?? ''];
        if (left !== right)
            return left < right ? -1 : 1;
    }
    return 0;
};
//# sourceMappingURL=sums.js.map