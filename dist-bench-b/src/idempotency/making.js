import { persistently } from '../lib/patience.js';
/** The key as it is kept with what its request makes. */
export const keptWith = ({ key, fingerprint, path }, kind, id) => ({
    ...{ key, fingerprint },
    made: { kind, id, location: kind === 'answer' ? path : `${path}/${id}` },
});
/** A store in which a key that is to be free becomes so, however long the storage takes nothing. */
export function releasing(store, persistence) {
    /** Keys that the storage still has to let go of, unless somebody takes them first. */
    const due = new Set();
    const releaseDue = async (key) => {
        if (due.has(key))
            await store.release(key);
        due.delete(key);
    };
    return Object.assign(Object.create(store), {
        begin(key, fingerprint) {
            due.delete(key);
            return store.begin(key, fingerprint);
        },
        async release(key) {
            due.add(key);
            await releaseDue(key).catch(() => void persistently(() => releaseDue(key), persistence));
        },
    });
}
/**
 * Answers the keys whose requests the end of an earlier process left unanswered from what they had made, as it is now; those whose
 * making did not come about are free again.
 * @param keys only those; default: all
 * @param find what was made; undefined when it is not there
 */
export async function answerLeft(store, find, keys) {
    if (keys?.length === 0)
        return;
    for (const { key, made } of (await store.left?.(keys)) ?? []) {
        const thing = await find(made);
        await (thing ? store.complete(key, answerOf(made, thing)) : store.release(key));
    }
}
const answerOf = ({ kind, location }, thing) => ({
    status: kind === 'answer' ? 200 : 201,
    headers: { 'content-type': 'application/json; charset=utf-8', ...(kind !== 'answer' && { location }) },
    body: JSON.stringify(thing),
});
//# sourceMappingURL=making.js.map