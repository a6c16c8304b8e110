export const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 };
/** What a prompt's answer says of the whole turn; undefined when it says nothing. */
export function turnUsage(answer) {
    const { usage, _meta } = answer;
    const counts = usage ?? _meta?.quota?.token_count;
    return counts && tokens(counts);
}
/** What an update says of one call of the model, between the pieces of its answer. */
export function callUsage(update) {
    const counts = update._meta?.usage;
    return counts && tokens(counts);
}
export const addUsage = (first, second) => ({
    inputTokens: first.inputTokens + second.inputTokens,
    outputTokens: first.outputTokens + second.outputTokens,
    cacheCreationTokens: first.cacheCreationTokens + second.cacheCreationTokens,
    cacheReadTokens: first.cacheReadTokens + second.cacheReadTokens,
});
function tokens(counts) {
    const input = counts.inputTokens ?? counts.input_tokens ?? 0;
    const output = counts.outputTokens ?? counts.output_tokens ?? 0;
    const cacheReadTokens = counts.cachedReadTokens ?? 0;
    const cacheCreationTokens = counts.cachedWriteTokens ?? 0;
    // Some count what came from the cache among the input, as their total shows; it is not to be counted twice.
    const isIncluded = counts.totalTokens !== undefined && counts.totalTokens <= input + output;
    return {
        inputTokens: isIncluded ? Math.max(0, input - cacheReadTokens - cacheCreationTokens) : input,
        outputTokens: output,
        cacheCreationTokens,
        cacheReadTokens,
    };
}
//# sourceMappingURL=usage.js.map