/** Keeps sign-ins for as long as the process runs. */
export function createMemorySignInStore() {
    const kept = new Map();
    return {
        async list() {
            return [...kept.values()].map((text) => JSON.parse(text));
        },
        async save(signIn) {
            kept.set(signIn.id, JSON.stringify(signIn));
        },
        async remove(id) {
            kept.delete(id);
        },
    };
}
//# sourceMappingURL=sign-in-store.js.map