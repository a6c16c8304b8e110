import { caught } from './caught.js'

type Listener<Payload> = (payload: Payload) => unknown

/** The events that are named, one row each: one that has none does not compile. */
export type EventRows<Events> = { readonly [E in keyof Events as string extends E ? never : E]: true }

interface Entry {
  listener: Listener<never>
  isFor: ((about: never) => boolean) | undefined
  isGone: boolean
}

const NOBODY: readonly Entry[] = []

interface Delivery {
  entry: Entry
  event: string
  payload: unknown
}

/**
 * Who is told what happened. A listener never runs inside the change that it is told of: deliveries wait in a queue for the next
 * microtask, and what a listener causes comes after all that happened before it.
 */
export class Listeners<Events extends Record<string, unknown>> {
  /** Never changed, but replaced: whoever goes through one is not disturbed, and an array costs no iterator. */
  readonly #entries = new Map<string, readonly Entry[]>()
  readonly #onError: (error: Error, event: string) => void
  #queue: (Delivery | undefined)[] = []

  /** @param onError told of every listener that throws or rejects; the other listeners are not affected */
  constructor(onError: (error: Error, event: string) => void) {
    this.#onError = onError
  }

  /**
   * @param listener may be async; its promise is not waited for
   * @param isFor what it wants to hear of, by what `emit` is given beside the payload; default: everything
   * @returns unsubscribes at once, also from what was emitted and not yet delivered
   */
  on<Event extends keyof Events & string, About>(
    event: Event,
    listener: Listener<Events[Event]>,
    isFor?: (about: About) => boolean,
  ): () => void {
    const entry: Entry = { listener, isFor, isGone: false }
    this.#entries.set(event, [...this.#listening(event), entry])
    return () => {
      entry.isGone = true
      this.#entries.set(
        event,
        this.#listening(event).filter((one) => one !== entry),
      )
    }
  }

  #listening(event: string): readonly Entry[] {
    return this.#entries.get(event) ?? NOBODY
  }

  /** Whether anybody listens, for a payload that is expensive to build. */
  has(event: keyof Events & string, about?: unknown): boolean {
    return this.#listening(event).some(({ isFor }) => isFor?.(about as never) ?? true)
  }

  /** Tells those who listen now. */
  emit<Event extends keyof Events & string>(event: Event, payload: Events[Event], about?: unknown): void {
    const idle = this.#queue.length === 0
    for (const entry of this.#listening(event))
      if (entry.isFor?.(about as never) ?? true) this.#queue.push({ entry, event, payload })
    if (idle && this.#queue.length > 0) queueMicrotask(() => this.#drain())
  }

  #drain(): void {
    let next = 0
    try {
      while (next < this.#queue.length) {
        const delivery = this.#queue[next]!
        // a queue that was long may outlive this as garbage, and what it holds with it
        this.#queue[next++] = undefined
        this.#deliver(delivery)
      }
    } finally {
      // Not empty only when onError itself threw: that is the host's to see, and costs nobody else a delivery.
      this.#queue = this.#queue.slice(next)
      if (this.#queue.length > 0) queueMicrotask(() => this.#drain())
    }
  }

  #deliver({ entry, event, payload }: Delivery): void {
    if (entry.isGone) return
    const tell = () => entry.listener(payload as never)
    caught(tell, (error) => this.#onError(error, event))
  }
}
