import { performance } from 'node:perf_hooks';
/** How long a node may take itself for alive, by its own clock, which nobody sets. */
export class Lease {
    /** Shorter than the lease: others may take it for dead only when it has long been frozen. */
    #safeMs;
    #on;
    #safeUntil = 0;
    #isFrozen = false;
    #timer;
    constructor(leaseMs, on) {
        this.#safeMs = leaseMs - leaseMs / 4;
        this.#on = on;
    }
    get isSafe() {
        return !this.#isFrozen && performance.now() < this.#safeUntil;
    }
    /** @param since when it was asked for: nobody knows when it was done. @returns whether it is safe now */
    renew(since) {
        this.#safeUntil = since + this.#safeMs;
        clearTimeout(this.#timer);
        const left = this.#safeUntil - performance.now();
        // as old as that it tells nothing of now
        if (left <= 0) {
            this.#freeze();
            return false;
        }
        this.#timer = setTimeout(() => this.#freeze(), left).unref();
        this.#on.onRenewed(left);
        if (this.#isFrozen) {
            this.#isFrozen = false;
            this.#on.onThawed();
        }
        return true;
    }
    stop() {
        clearTimeout(this.#timer);
    }
    #freeze() {
        if (this.#isFrozen)
            return;
        this.#isFrozen = true;
        this.#on.onFrozen();
    }
}
//# sourceMappingURL=lease.js.map