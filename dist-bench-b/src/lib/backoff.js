/** Milliseconds to wait after so many tries in vain, 1 at least. */
export const delayAfter = (tries, { firstMs, longestMs = Number.POSITIVE_INFINITY }) => Math.min(firstMs * 2 ** (tries - 1), longestMs);
//# sourceMappingURL=backoff.js.map