/** A Map that is made with its first entry: an empty one takes 200 bytes, and an idle session would have several. */
export class LazyMap<K, V> {
  #map: Map<K, V> | undefined

  get size(): number {
    return this.#map?.size ?? 0
  }

  get(key: K): V | undefined {
    return this.#map?.get(key)
  }

  has(key: K): boolean {
    return this.#map?.has(key) ?? false
  }

  set(key: K, value: V): void {
    this.#map ??= new Map()
    this.#map.set(key, value)
  }

  delete(key: K): boolean {
    return this.#map?.delete(key) ?? false
  }

  keys(): Iterable<K> {
    return this.#map?.keys() ?? []
  }

  values(): Iterable<V> {
    return this.#map?.values() ?? []
  }
}
