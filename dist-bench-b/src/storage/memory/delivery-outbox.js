const ATTEMPTS_PER_LANE = 100;
const MAX_LANES = 10_000;
const MAX_GONE = 10_000;
/**
 * Keeps deliveries for as long as the process runs; a second gateway that is built on the same object makes what the first one left.
 * Of the lanes with attempts, those that heard nothing for the longest time are forgotten first, beyond ten thousand.
 */
export function createMemoryDeliveryOutbox() {
    const kept = new Map();
    const lanes = new Map();
    const gone = new Set();
    const keyOf = (lane, id) => JSON.stringify([lane, id]);
    const addNow = ({ id, lane, delivery }) => {
        const key = keyOf(lane, id);
        if (!kept.has(key))
            kept.set(key, { id, lane, delivery: JSON.stringify(delivery) });
    };
    return {
        addNow,
        async add(delivery) {
            addNow(delivery);
        },
        async remove(lane, id) {
            kept.delete(keyOf(lane, id));
        },
        async list() {
            return [...kept.values()].map((one) => ({ ...one, delivery: JSON.parse(one.delivery) }));
        },
        async log(lane, attempt) {
            const attempts = lanes.get(lane) ?? [];
            attempts.push({ ...attempt });
            if (attempts.length > ATTEMPTS_PER_LANE)
                attempts.shift();
            lanes.delete(lane);
            lanes.set(lane, attempts);
            if (lanes.size > MAX_LANES)
                lanes.delete(lanes.keys().next().value);
        },
        async attempts(lane) {
            return (lanes.get(lane) ?? []).map((attempt) => ({ ...attempt })).reverse();
        },
        async forget(lane) {
            lanes.delete(lane);
            gone.delete(lane);
        },
        async rememberGone(target) {
            gone.add(target);
            if (gone.size > MAX_GONE)
                gone.delete(gone.values().next().value);
        },
        async gone() {
            return [...gone];
        },
    };
}
//# sourceMappingURL=delivery-outbox.js.map