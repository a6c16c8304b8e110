import { visible } from '../principal.js';
const isActive = (status) => status === 'queued' || status === 'running' || status === 'parked';
/** How many jobs are in each state that is not terminal, by profile. */
export class JobCounters {
    #byProfile = new Map();
    #queued = 0;
    /** Of all profiles. */
    get queued() {
        return this.#queued;
    }
    /** Takes queued jobs into account that are stored already. */
    addQueued(profile, count) {
        if (count === 0)
            return;
        const counts = this.#byProfile.get(profile) ?? { queued: 0, running: 0, parked: 0 };
        counts.queued += count;
        this.#queued += count;
        this.#byProfile.set(profile, counts);
    }
    /** @param from undefined for a new job */
    move(profile, from, to) {
        const counts = this.#byProfile.get(profile) ?? { queued: 0, running: 0, parked: 0 };
        if (isActive(from))
            counts[from]--;
        if (isActive(to))
            counts[to]++;
        if (from === 'queued')
            this.#queued--;
        if (to === 'queued')
            this.#queued++;
        if (counts.queued !== 0 || counts.running !== 0 || counts.parked !== 0)
            this.#byProfile.set(profile, counts);
        else
            this.#byProfile.delete(profile);
    }
    /** Of the profiles that a caller may see. */
    visibleTo(principal) {
        const total = { queued: 0, running: 0, parked: 0 };
        for (const [profile, counts] of this.#byProfile) {
            if (!visible(principal, profile))
                continue;
            total.queued += counts.queued;
            total.running += counts.running;
            total.parked += counts.parked;
        }
        return total;
    }
}
//# sourceMappingURL=counters.js.map