/** Keeps keys and subscriptions for as long as the process runs. */
export function createMemoryChannelStore() {
    const keys = new Map();
    const subscriptions = new Map();
    return {
        async keyOnce(name, value) {
            if (!keys.has(name))
                keys.set(name, value);
            return keys.get(name);
        },
        async key(name) {
            return keys.get(name);
        },
        async saveKey(name, value) {
            keys.set(name, value);
        },
        async subscriptions() {
            return [...subscriptions.values()].map((text) => JSON.parse(text));
        },
        async saveSubscription(subscription) {
            subscriptions.set(subscription.id, JSON.stringify(subscription));
        },
        async removeSubscription(id) {
            subscriptions.delete(id);
        },
    };
}
//# sourceMappingURL=channel-store.js.map