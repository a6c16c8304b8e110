/** A Map that is made with its first entry: an empty one takes 200 bytes, and an idle session would have several. */
export class LazyMap {
    #map;
    get size() {
        return this.#map?.size ?? 0;
    }
    get(key) {
        return this.#map?.get(key);
    }
    has(key) {
        return this.#map?.has(key) ?? false;
    }
    set(key, value) {
        this.#map ??= new Map();
        this.#map.set(key, value);
    }
    delete(key) {
        return this.#map?.delete(key) ?? false;
    }
    keys() {
        return this.#map?.keys() ?? [];
    }
    values() {
        return this.#map?.values() ?? [];
    }
}
//# sourceMappingURL=lazy-map.js.map