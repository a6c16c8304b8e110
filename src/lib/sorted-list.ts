/** The order of two texts, by their UTF-16 units: the same everywhere, whatever the language of the machine. */
export const byText = (a: string, b: string): number => (a < b ? -1 : +(a > b))

/** Items per chunk at most; a move within one costs next to nothing. */
const CHUNK = 512

/**
 * A list that is always in order. Adding, deleting and finding a place cost the logarithm of its length plus one small move, wherever
 * it happens. The order must be total, and what it looks at must not change while an item is in the list.
 */
export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number
  /** None is empty. */
  readonly #chunks: T[][] = []
  #length = 0

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get length(): number {
    return this.#length
  }

  get first(): T | undefined {
    return this.#chunks[0]?.[0]
  }

  add(item: T): void {
    this.#length++
    if (this.#append(item)) return
    const before = (other: T) => this.#compare(other, item) < 0
    const at = this.#chunkOf(before)
    const chunk = this.#chunks[at]!
    chunk.splice(prefixLength(chunk, before), 0, item)
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2))
  }

  /** What mostly comes last needs no search, and leaves full chunks behind. */
  #append(item: T): boolean {
    const last = this.#chunks.at(-1)
    if (last && this.#compare(last[last.length - 1]!, item) >= 0) return false
    if (last && last.length < CHUNK) last.push(item)
    else this.#chunks.push([item])
    return true
  }

  /** @returns false when there is no such item */
  delete(item: T): boolean {
    if (item === this.first) {
      this.#length--
      if (this.#chunks[0]!.length > 1) this.#chunks[0]!.shift()
      else this.#chunks.shift()
      return true
    }
    const before = (other: T) => this.#compare(other, item) < 0
    const at = this.#chunkOf(before)
    const chunk = this.#chunks[at]
    if (!chunk) return false
    const index = prefixLength(chunk, before)
    if (index === chunk.length || this.#compare(chunk[index]!, item) !== 0) return false
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    this.#length--
    return true
  }

  /** From the last item down to the first, of those that are `before` some place; `before` holds for a prefix of the list. */
  *descending(before: (item: T) => boolean = () => true): Generator<T, void> {
    let at = Math.min(this.#chunkOf(before), this.#chunks.length - 1)
    for (let end = at < 0 ? 0 : prefixLength(this.#chunks[at]!, before); at >= 0; at--) {
      const chunk = this.#chunks[at]!
      for (let index = Math.min(end, chunk.length) - 1; index >= 0; index--) yield chunk[index]!
      end = Number.MAX_SAFE_INTEGER
    }
  }

  /** From the first item to the last, of those that are `behind` some place; `behind` fails for a prefix of the list. */
  *ascending(behind: (item: T) => boolean = () => true): Generator<T, void> {
    const before = (item: T) => !behind(item)
    let at = this.#chunkOf(before)
    for (let index = prefixLength(this.#chunks[at] ?? [], before); at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at]!
      for (; index < chunk.length; index++) yield chunk[index]!
      index = 0
    }
  }

  /** The first chunk that does not lie `before` as a whole. */
  #chunkOf(before: (item: T) => boolean): number {
    return prefixLength(this.#chunks, (chunk) => before(chunk[chunk.length - 1]!))
  }
}

/** How many items at the beginning fulfil a condition that no item after them fulfils. */
export function prefixLength<T>(items: readonly T[], condition: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (condition(items[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}
