const CHUNK = 256

/**
 * An immutable list that grows at its end. A longer or changed version shares all chunks with its predecessor but those that changed, so that
 * an event costs the same in a transcript of ten items and of a hundred thousand, and a view can skip what has not changed by comparing
 * `chunks`.
 */
export class ItemList<T> implements Iterable<T> {
  readonly length: number
  /** Each of 256 items but the last; the same array as before wherever nothing changed. */
  readonly chunks: readonly (readonly T[])[]

  constructor(chunks: readonly (readonly T[])[] = []) {
    this.chunks = chunks
    this.length = chunks.length === 0 ? 0 : (chunks.length - 1) * CHUNK + chunks[chunks.length - 1]!.length
  }

  at(index: number): T | undefined {
    const from = index < 0 ? this.length + index : index
    return this.chunks[Math.floor(from / CHUNK)]?.[from % CHUNK]
  }

  *[Symbol.iterator](): Generator<T> {
    for (const chunk of this.chunks) yield* chunk
  }

  toArray(): T[] {
    return this.chunks.flat() as T[]
  }
}

/** Changes to a list: copies each chunk at most once, however many changes there are. */
export class ItemListEditor<T> {
  readonly #original: ItemList<T>
  #chunks: (readonly T[])[] | undefined
  readonly #own = new Set<readonly T[]>()
  #length: number

  constructor(list: ItemList<T>) {
    this.#original = list
    this.#length = list.length
  }

  get length(): number {
    return this.#length
  }

  at(index: number): T | undefined {
    return (this.#chunks ?? this.#original.chunks)[Math.floor(index / CHUNK)]?.[index % CHUNK]
  }

  push(item: T): void {
    this.set(this.#length++, item)
  }

  set(index: number, item: T): void {
    this.#chunks ??= [...this.#original.chunks]
    const place = Math.floor(index / CHUNK)
    let chunk = this.#chunks[place]
    if (!chunk || !this.#own.has(chunk)) {
      chunk = chunk ? [...chunk] : []
      this.#own.add(chunk)
      this.#chunks[place] = chunk
    }
    ;(chunk as T[])[index % CHUNK] = item
  }

  /** The list with the changes; the original when there were none. */
  done(): ItemList<T> {
    return this.#chunks ? new ItemList(this.#chunks) : this.#original
  }
}
