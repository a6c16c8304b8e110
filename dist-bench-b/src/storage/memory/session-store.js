/** Parked sessions in memory, as text: a park survives a disconnect, not a restart. */
export class MemorySessionStore {
    #records = new Map();
    async save(record) {
        this.#records.set(record.id, JSON.stringify(record));
    }
    async get(id) {
        const text = this.#records.get(id);
        return text === undefined ? undefined : JSON.parse(text);
    }
    async list() {
        return [...this.#records.values()].map((text) => JSON.parse(text));
    }
    async delete(id) {
        this.#records.delete(id);
    }
}
//# sourceMappingURL=session-store.js.map