/** The middle value; of an even number of values, the mean of the two in the middle. */
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >>> 1;
    return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
export function percentile(values, share) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
/**
 * Measures two things in turn, so that both see the same weather: A B, B A, A B and so on, after one round that is not counted.
 */
export async function interleave(rounds, ours, baseline) {
    await ours();
    await baseline();
    const paired = { ours: [], baseline: [] };
    for (let round = 0; round < rounds; round++) {
        if (round % 2 === 0)
            paired.ours.push(await ours());
        paired.baseline.push(await baseline());
        if (round % 2 === 1)
            paired.ours.push(await ours());
    }
    return paired;
}
/** The median of the ratios of neighbouring measurements. */
export const ratioOf = ({ ours, baseline }) => median(ours.map((value, round) => value / baseline[round]));
/** One line of a report: both figures, their ratio, and whether the target is met. */
export function line(what, paired, unit, target) {
    const ratio = ratioOf(paired);
    const ratios = paired.ours.map((value, round) => value / paired.baseline[round]);
    const spread = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
    const figures = `${format(median(paired.ours))} ${unit}, baseline ${format(median(paired.baseline))} ${unit}`;
    return `${what}: ${ratio.toFixed(2)}x (${spread}) = ${figures}${target === undefined ? '' : verdict(ratio, target, 'x')}`;
}
export const verdict = (value, target, unit) => `  [target <= ${target}${unit === 'x' ? 'x' : ` ${unit}`}: ${value <= target ? 'met' : 'MISSED'}]`;
export const format = (value) => Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
export const MB = 1024 * 1024;
//# sourceMappingURL=figures.js.map