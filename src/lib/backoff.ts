/** How long to wait between tries. */
export interface Backoff {
  /** Before the second try; twice as long before every further one. Milliseconds. */
  firstMs: number
  /** No wait is longer. Default: no limit. */
  longestMs?: number
}

/** Milliseconds to wait after so many tries in vain, 1 at least. */
export const delayAfter = (tries: number, { firstMs, longestMs = Number.POSITIVE_INFINITY }: Backoff): number =>
  Math.min(firstMs * 2 ** (tries - 1), longestMs)
