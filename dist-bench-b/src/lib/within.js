import { systemClock } from './clock.js';
/**
 * Waits for some work, but not longer than `limitMs`: then comes what `onLate` returns, or throws; by default nothing comes. The work itself
 * goes on, and is told nothing.
 */
export function within(limitMs, work, { clock = systemClock, onLate } = {}) {
    return new Promise((resolve, reject) => {
        const late = () => {
            try {
                resolve(onLate?.());
            }
            catch (refusal) {
                reject(refusal);
            }
        };
        const timer = clock.after(limitMs, late, 'always');
        Promise.resolve(work).then((result) => {
            timer.cancel();
            resolve(result);
        }, (error) => {
            timer.cancel();
            reject(error);
        });
    });
}
//# sourceMappingURL=within.js.map