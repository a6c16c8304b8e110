import type { ClientRequest, IncomingMessage } from 'node:http'
import { announcesBody } from './http-versions.js'

/** So much is kept until somebody has begun to answer: most bodies are smaller, and may go to another node after all. */
const KEPT_BYTES = 64 * 1024

/** The body of a request on its way to another node: passed on as it comes, and little enough of it can be sent once more. */
export class ReplayableBody {
  readonly #source: IncomingMessage
  readonly #isNone: boolean
  #kept: Buffer[] = []
  #bytes = 0
  #isSettled = false
  #isCut = false
  #target: ClientRequest | undefined
  #isTouched = false
  #hasEnded = false

  constructor(source: IncomingMessage) {
    this.#source = source
    this.#isNone = !announcesBody(source)
  }

  /** Whether nothing comes, or came, of it. */
  get isEmpty(): boolean {
    return this.#isNone || (this.#hasEnded && this.#bytes === 0)
  }

  /** So much of it has come. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether something of it was read. */
  get isTouched(): boolean {
    return this.#isTouched
  }

  /** Whether all that was read is still there. */
  get canReplay(): boolean {
    return !this.#isCut
  }

  /** Whether all of it was passed on. */
  get isSent(): boolean {
    return this.isEmpty || this.#hasEnded
  }

  pipeTo(target: ClientRequest): void {
    this.#target = target
    for (const chunk of this.#kept) target.write(chunk)
    if (this.#hasEnded) {
      target.end()
      return
    }
    if (!this.#isTouched) {
      this.#isTouched = true
      this.#source.on('data', (chunk: Buffer) => this.#pass(chunk))
      this.#source.once('end', () => {
        this.#hasEnded = true
        this.#target?.end()
      })
      this.#source.once('error', () => this.#target?.destroy())
    }
    target.on('drain', () => this.#source.resume())
    this.#source.resume()
  }

  /** It goes to somebody else, if at all. */
  detach(): void {
    this.#target = undefined
    if (this.#isTouched) this.#source.pause()
  }

  /** It will not be sent again; what comes when nobody reads it any more is dropped. */
  settle(): void {
    this.#isSettled = true
    this.#kept = []
    const drop = () => {
      this.#target = undefined
      this.#source.resume()
    }
    if (this.#target) this.#target.once('close', drop)
    else if (this.#isTouched) drop()
  }

  #pass(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes <= KEPT_BYTES && !this.#isSettled) this.#kept.push(chunk)
    else {
      this.#isCut = true
      this.#kept = []
    }
    if (this.#target?.write(chunk) === false) this.#source.pause()
  }
}
