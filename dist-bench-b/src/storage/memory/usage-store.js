import { addTo, emptySum, inOrder } from '../../usage/sums.js';
/** Keeps sums for as long as the process runs. */
export function createMemoryUsageStore() {
    const sums = new Map();
    /** The sum of the last count, which the next one mostly belongs to, too. */
    let last;
    const sumOf = ({ day, profile, agent, person }) => {
        if (last?.day === day && last.profile === profile && last.agent === agent && last.person === person)
            return last;
        const key = JSON.stringify([day, profile, agent, person]);
        last = sums.get(key) ?? { ...emptySum(), day, profile, agent, person };
        sums.set(key, last);
        return last;
    };
    const addNow = (count) => addTo(sumOf(count), count);
    return {
        addNow,
        async add(counts) {
            for (const count of counts)
                addNow(count);
        },
        async read({ from, to, profiles }, by, limit) {
            const grouped = new Map();
            for (const sum of sums.values()) {
                if (sum.day < from || sum.day > to || profiles?.includes(sum.profile) === false)
                    continue;
                const parts = by.map((group) => sum[group]);
                const found = grouped.get(JSON.stringify(parts)) ?? {
                    ...emptySum(),
                    ...Object.fromEntries(by.map((group, index) => [group, parts[index]])),
                };
                addTo(found, sum);
                grouped.set(JSON.stringify(parts), found);
            }
            return [...grouped.values()].sort(inOrder(by)).slice(0, limit);
        },
    };
}
//# sourceMappingURL=usage-store.js.map