interface Place<T> {
  readonly value: T
  before: Place<T> | undefined
  after: Place<T> | undefined
}

/**
 * Objects that come and go by thousands a second, in the order in which they came. A `Set` or `Map` of them is rebuilt again and again,
 * and each table that it leaves behind points to the next one: once one has become old, V8 keeps all that was ever in any of them until
 * its next full collection.
 */
export class Passing<T> {
  #first: Place<T> | undefined
  #last: Place<T> | undefined

  /** @returns takes it out; a second call does nothing */
  add(value: T): () => void {
    const place: Place<T> = { value, before: this.#last, after: undefined }
    if (this.#last) this.#last.after = place
    else this.#first = place
    this.#last = place
    let isIn = true
    return () => {
      if (isIn) this.#takeOut(place)
      isIn = false
    }
  }

  /** Those that are there when it begins. */
  *[Symbol.iterator](): Generator<T> {
    for (const { value } of [...this.#places()]) yield value
  }

  *#places(): Generator<Place<T>> {
    for (let place = this.#first; place; place = place.after) yield place
  }

  #takeOut(place: Place<T>): void {
    const { before, after } = place
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    // what is old must not point to what comes later
    place.before = undefined
    place.after = undefined
  }
}
