import type { Gateway } from '../src/gateway.js'
import type { Timer } from '../src/lib/clock.js'
import { CLOSE, type Close } from '../src/sessions/attachment.js'

/** One open stream, of whatever transport. */
export interface Stream {
  /** Called every 25 s: shows that the server is there, and finds out whether the client is. */
  beat(): void
  close(close: Close): void
  /** Ends the connection without ceremony. */
  terminate(): void
}

const BEAT_MS = 25_000
const CLOSE_GRACE_MS = 2_000

/** Every open stream of one gateway: their heartbeat, and their end at shutdown. */
export class Streams {
  readonly #open = new Set<Stream>()
  readonly #gateway: Gateway
  #timer: Timer | undefined
  #onEmpty: (() => void) | undefined

  constructor(gateway: Gateway) {
    this.#gateway = gateway
  }

  get size(): number {
    return this.#open.size
  }

  add(stream: Stream): void {
    this.#open.add(stream)
    this.#timer ??= this.#gateway.clock.after(BEAT_MS, () => this.#beat())
  }

  delete(stream: Stream): void {
    this.#open.delete(stream)
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  #beat(): void {
    for (const stream of this.#open) stream.beat()
    this.#timer = this.#open.size > 0 ? this.#gateway.clock.after(BEAT_MS, () => this.#beat()) : undefined
  }

  /** Tells all to come back later; a client that does not react is cut off. */
  async closeAll(): Promise<void> {
    this.#timer?.cancel()
    for (const stream of this.#open) stream.close(CLOSE.goingAway)
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#gateway.clock.after(CLOSE_GRACE_MS, resolve)
        this.#onEmpty = () => {
          timer.cancel()
          resolve()
        }
      })
    }
    for (const stream of this.#open) stream.terminate()
  }
}
