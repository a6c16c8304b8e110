import { AsyncResource } from 'node:async_hooks'
import type { FastifyRequest } from 'fastify'
import { CLOSE, type Close } from '../schemas/close-codes.js'
import type { Gateway } from '../src/gateway.js'
import type { Timer } from '../src/lib/clock.js'
import { within } from '../src/lib/within.js'
import type { Principal } from '../src/principal.js'
import type { LogSlice } from '../src/sessions/log/event-log.js'
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
  /** With what its host keeps beside this request (`AsyncLocalStorage`): a beat has that of whoever opened a stream first. */
  readonly #identify: () => ReturnType<Identify>
  /** What it is told once the node may speak again. */
  #untold: { parts: readonly (LogSlice | object | string)[]; epoch: string | undefined }[] = []

  constructor(open: OpenWire<W>, request: FastifyRequest, parts: StreamParts) {
    this.request = request
    this.parts = parts
    this.#identify = AsyncResource.bind(() => parts.identify(request))
    this.wire = open({
      onGone: () => {
        parts.streams.delete(this)
        this.onGone()
      },
      onDrain: () => {
        if (this.#untold.length === 0) this.onDrain()
      },
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

  /** As `Wire.write`; nothing is told while the node may not speak. */
  tell(parts: readonly (LogSlice | object | string)[], epoch?: string): boolean {
    if (!this.parts.streams.silent && this.#untold.length === 0) return this.wire.write(parts, epoch)
    this.#untold.push({ parts, epoch })
    return false
  }

  /** Tells what was not told. */
  speakAgain(): void {
    const untold = this.#untold.splice(0)
    if (untold.length === 0) return
    let taken = true
    for (const { parts, epoch } of untold) taken = this.wire.write(parts, epoch)
    if (taken) this.onDrain()
  }

  /** Whether it has not written all of the bytes that it was given; they must not change until then. */
  get holds(): boolean {
    return this.#untold.length > 0 || this.wire.holds
  }

  close(close: Close): void {
    this.wire.close(close)
  }

  /** Ends what it is told, and tells why. */
  cutOff(close: Close): void {
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
      if (this.admits(await this.#identify())) return true
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
  #isClosing = false

  constructor(gateway: Gateway) {
    this.#gateway = gateway
    const { standing } = gateway
    standing?.listeners.on('thawed', () => this.#speakAgain())
    for (const event of ['moved', 'lost'] as const)
      standing?.listeners.on(event, () => {
        for (const stream of this.#open) stream.cutOff(CLOSE.sessionMoved)
      })
  }

  /** Whether nobody is told anything now. */
  get silent(): boolean {
    return this.#gateway.standing?.stands ?? false
  }

  /** Present while nobody is listened to; resolves when that is over. */
  get listensAgain(): Promise<void> | undefined {
    return this.silent ? this.#gateway.standing?.goesOn : undefined
  }

  #speakAgain(): void {
    // it may have been for a moment only
    if (!this.silent) for (const stream of this.#open) stream.speakAgain()
  }

  get size(): number {
    return this.#open.size
  }

  add(stream: StreamClient): void {
    this.#open.add(stream)
    // who was let in before: nobody else would tell them
    const end = this.#gateway.standing?.isLost ? CLOSE.sessionMoved : this.#isClosing ? CLOSE.goingAway : undefined
    // its follower is set right after this
    if (end) queueMicrotask(() => stream.cutOff(end))
    if (this.#isClosing) return
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
    this.#isClosing = true
    this.#timer?.cancel()
    for (const stream of this.#open) stream.close(CLOSE.goingAway)
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    if (this.#open.size > 0) await within(CLOSE_GRACE_MS, emptied, { clock: this.#gateway.clock })
    for (const stream of this.#open) stream.terminate()
  }
}
