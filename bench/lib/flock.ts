import { RawSocket } from './raw-socket.js'

/** Many clients of one stream that only count; tells when the last of them has passed a mark. */
export class Flock {
  readonly #sockets: RawSocket[] = []
  readonly #waitingAt = new Map<number, number>()
  readonly #size: number
  readonly #every: number
  readonly #onPassed: () => void

  /**
   * @param every messages from one mark to the next
   * @param onPassed all clients have passed one more mark
   */
  constructor(size: number, every: number, onPassed: () => void) {
    this.#size = size
    this.#every = every
    this.#onPassed = onPassed
  }

  /** @param greeting messages that a client is sent when it comes, before anything that counts */
  async open(url: string, greeting: number): Promise<void> {
    for (let n = 0; n < this.#size; n++) {
      let next = greeting + this.#every
      const onProgress = ({ messages }: RawSocket) => {
        for (; messages >= next; next += this.#every) this.#pass(next)
      }
      this.#sockets.push(await RawSocket.open(url, { onProgress }))
    }
    while (this.#sockets.some(({ messages }) => messages < greeting)) await new Promise(setImmediate)
  }

  #pass(mark: number): void {
    const passed = (this.#waitingAt.get(mark) ?? 0) + 1
    if (passed < this.#size) this.#waitingAt.set(mark, passed)
    else {
      this.#waitingAt.delete(mark)
      this.#onPassed()
    }
  }

  drop(): void {
    for (const socket of this.#sockets) socket.drop()
  }
}
