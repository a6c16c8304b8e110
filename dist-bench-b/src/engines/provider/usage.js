export const noUsage = () => ({
    inputTokens: 0,
    outputTokens: 0,
    cacheCreationTokens: 0,
    cacheReadTokens: 0,
});
export const addUsage = (a, b) => ({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheCreationTokens: a.cacheCreationTokens + b.cacheCreationTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
});
/** @returns US dollars; 0 for a model without a price */
export function costOf(usage, price) {
    if (!price)
        return 0;
    const perMillion = usage.inputTokens * price.input +
        usage.outputTokens * price.output +
        usage.cacheReadTokens * (price.cacheRead ?? price.input) +
        usage.cacheCreationTokens * (price.cacheCreation ?? price.input);
    return perMillion / 1e6;
}
//# sourceMappingURL=usage.js.map