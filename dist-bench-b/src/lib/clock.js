/** The longest delay that `setTimeout` takes; beyond it Node fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;
/**
 * A one-shot timer for delays of any length, `Infinity` included (it never fires). It does not keep the process alive.
 * @param delayMs milliseconds; negative and NaN count as 0
 */
export function startLongTimer(delayMs, run) {
    let remainingMs = delayMs > 0 ? delayMs : 0;
    let handle;
    const arm = () => {
        const stepMs = Math.min(remainingMs, MAX_DELAY_MS);
        remainingMs -= stepMs;
        handle = setTimeout(remainingMs > 0 ? arm : run, stepMs);
        handle.unref();
    };
    if (remainingMs !== Infinity)
        arm();
    return { cancel: () => clearTimeout(handle) };
}
export const systemClock = {
    now: () => Date.now(),
    after: startLongTimer,
};
//# sourceMappingURL=clock.js.map