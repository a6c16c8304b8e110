import type { FastifyRequest } from 'fastify'
import { CLOSE, type Close } from '../schemas/close-codes.js'
import type { Gateway } from '../src/gateway.js'
import type { Timer } from '../src/lib/clock.js'
import type { Principal } from '../src/principal.js'
import type { Identify } from './auth.js'
import type { OpenWire, Wire } from './wires.js'

const BEAT_MS = 25_000
const CLOSE_GRACE_MS = 2_000

/** What every stream is opened with. */
export interface StreamParts {
  identify: Identify
  streams: Streams
}

/** One client of a stream, whatever carries it: known to all streams while it is there, and let in anew at every beat. */
export abstract class StreamClient<W extends Wire = Wire> {
  protected readonly wire: W
  readonly request: FastifyRequest
  protected readonly parts: StreamParts

  constructor(open: OpenWire<W>, request: FastifyRequest, parts: StreamParts) {
    this.request = request
    this.parts = parts
    this.wire = open({
      onGone: () => {
        parts.streams.delete(this)
        this.onGone()
      },
      onDrain: () => this.onDrain(),
      onMessage: (data, isBinary) => this.onMessage(data, isBinary),
    })
    parts.streams.add(this)
  }

  /** Whether it may go on, as whoever it is by now. */
  protected abstract admits(principal: Principal): boolean
  /** The connection has ended. */
  protected abstract onGone(): void
  protected onDrain(): void {}
  protected onMessage(_data: Buffer, _isBinary: boolean): void {}

  close(close: Close): void {
    this.wire.close(close)
  }

  /** Ends what it is told, and tells why. */
  protected cutOff(close: Close): void {
    this.close(close)
  }

  /** Ends the connection without ceremony. */
  terminate(): void {
    this.wire.terminate()
  }

  /** Called every 25 s: shows that the server is there, and finds out whether the client is. */
  beat(): void {
    if (this.wire.alive()) void this.stillWelcome()
    else this.terminate()
  }

  /** Authenticates the client again, as every request is. @returns false when it was told to go */
  async stillWelcome(): Promise<boolean> {
    try {
      if (this.admits(await this.parts.identify(this.request))) return true
    } catch {
      // told by the close code
    }
    this.cutOff(CLOSE.unauthenticated)
    return false
  }
}

/** Every open stream of one gateway: their heartbeat, and their end at shutdown. */
export class Streams {
  readonly #open = new Set<StreamClient>()
  readonly #gateway: Gateway
  #timer: Timer | undefined
  #onEmpty: (() => void) | undefined

  constructor(gateway: Gateway) {
    this.#gateway = gateway
  }

  get size(): number {
    return this.#open.size
  }

  add(stream: StreamClient): void {
    this.#open.add(stream)
    this.#timer ??= this.#gateway.clock.after(BEAT_MS, () => this.#beat())
  }

  delete(stream: StreamClient): void {
    this.#open.delete(stream)
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  /** Somebody is at the other end of a stream, and not only a page. */
  onUsed({ signInId }: FastifyRequest): void {
    if (signInId !== undefined) this.#gateway.signIns?.use(signInId)
  }

  /** Lets in anew, or not, those whose requests are meant. */
  judge(isMeant: (request: FastifyRequest) => boolean): void {
    for (const stream of this.#open) if (isMeant(stream.request)) void stream.stillWelcome()
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
