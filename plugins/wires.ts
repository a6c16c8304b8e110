import type { Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import type { Close } from '../schemas/close-codes.js'
import type { Clock, Timer } from '../src/lib/clock.js'
import { written } from '../src/lib/logger.js'
import type { LogSlice } from '../src/sessions/log/event-log.js'
import { encodeTextFrame } from '../src/sessions/log/log-segments.js'
import { corsHeaders } from './cors.js'
import { isGone } from './http-versions.js'
import { expectBadFrames, sayWhyItCloses } from './sockets.js'

/** A frame that is text already, and an id that a client of an event stream can come back with. */
export class MarkedFrame {
  constructor(
    readonly id: string,
    readonly text: string,
  ) {}
}

/** What carries the frames of a stream to one client. */
export interface Wire {
  /**
   * Writes everything in one go, in order: events as the log keeps them, frames as they are, and text that is a frame already, with an id or without.
   * @param epoch of the log that the events are of · @returns false when the client should be given time, until `onDrain`
   */
  write(parts: readonly (LogSlice | object | string)[], epoch?: string): boolean
  readonly unreadBytes: number
  /** Whether it has not written all of the bytes that it was given; they must not change until then. */
  readonly holds: boolean
  /** Asks whether the client is there; false when it did not answer for too long. */
  alive(): boolean
  close(close: Close): void
  /** Ends the connection without ceremony. */
  terminate(): void
}

/** Who is told what happens to a connection. */
export interface WireEvents {
  onGone(): void
  /** The client has taken what was written. */
  onDrain?(): void
  /** What a client says; over a socket only. */
  onMessage?(data: Buffer, isBinary: boolean): void
}

/** Opens what carries a stream; its listeners are set before it returns. */
export type OpenWire<T extends Wire = Wire> = (events: WireEvents) => T

const MISSED_BEATS = 2
const COMMENT_MS = 15_000
/** As long as a socket has that misses its beats. */
const STUCK_MS = 75_000

export const socketWire =
  (socket: WebSocket, request: FastifyRequest): OpenWire<SocketWire> =>
  (events) =>
    new SocketWire(socket, request, events)

export class SocketWire implements Wire {
  readonly #socket: WebSocket
  /** Written to directly: the log's bytes are frames already, and go out for all clients without a copy. */
  readonly #raw: Socket
  #missedBeats = 0

  constructor(socket: WebSocket, request: FastifyRequest, { onGone, onDrain, onMessage }: WireEvents) {
    this.#socket = socket
    this.#raw = (socket as unknown as { _socket: Socket })._socket
    const heard = () => {
      this.#missedBeats = 0
    }
    socket.on('pong', heard)
    socket.on('message', (data: Buffer, isBinary) => {
      heard()
      onMessage?.(data, isBinary)
    })
    expectBadFrames(socket, request)
    sayWhyItCloses(socket)
    socket.on('close', onGone)
    if (onDrain) this.#raw.on('drain', onDrain)
  }

  write(parts: readonly (LogSlice | object | string)[]): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return true
    let taken = true
    if (parts.length > 1) this.#raw.cork()
    for (const part of parts) taken = this.#raw.write(isSlice(part) ? part.frames : encodeTextFrame(textOf(part)))
    if (parts.length > 1) this.#raw.uncork()
    return taken
  }

  get unreadBytes(): number {
    return this.#raw.writableLength
  }

  get holds(): boolean {
    return this.unreadBytes > 0
  }

  alive(): boolean {
    if (this.#missedBeats >= MISSED_BEATS) return false
    this.#missedBeats++
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping()
    return true
  }

  close({ code, reason }: Close): void {
    this.#socket.close(code, reason)
  }

  terminate(): void {
    this.#socket.terminate()
  }

  /** Reads nothing more from the client for now. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }
}

export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // what is packed on its way (Caddy's encode) arrives when the packer has enough, which on a quiet stream is never
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** Server-sent events instead of an answer: the frames of the socket as `data`, with a comment while there is nothing to say. */
export const eventStreamWire =
  (request: FastifyRequest, reply: FastifyReply, clock: Clock): OpenWire =>
  (events) => {
    reply.hijack()
    return new EventStreamWire(request, reply, clock, events)
  }

class EventStreamWire implements Wire {
  /** What it writes is text of its own. */
  readonly holds = false
  readonly #raw: ServerResponse
  readonly #server: Server
  readonly #clock: Clock
  #comment: Timer | undefined

  constructor(request: FastifyRequest, reply: FastifyReply, clock: Clock, { onGone, onDrain }: WireEvents) {
    this.#raw = reply.raw
    this.#server = request.server.server
    this.#clock = clock
    const gone = () => {
      this.#comment?.cancel()
      onGone()
    }
    // who went while they were let in goes once more: whoever opens this cannot hear of it yet
    if (isGone(this.#raw)) setImmediate(gone)
    else this.#raw.on('close', gone)
    if (onDrain) this.#raw.on('drain', onDrain)
    this.#raw.on('error', (error) => written(() => request.log.debug({ err: error }, 'event stream error')))
    // who takes nothing would be here for ever; comments keep the connection of who does busy
    this.#raw.setTimeout(STUCK_MS, () => this.terminate())
    this.#raw.writeHead(200, { ...corsHeaders(reply), ...EVENT_STREAM_HEADERS })
    this.#raw.flushHeaders()
    this.#scheduleComment()
  }

  write(parts: readonly (LogSlice | object | string)[], epoch?: string): boolean {
    let text = ''
    for (const part of parts) {
      if (isSlice(part))
        for (const { seq, json } of part.events())
          text += `id: ${epoch}:${seq}\ndata: {"type":"event","event":${json}}\n\n`
      else {
        if (part instanceof MarkedFrame) text += `id: ${part.id}\n`
        text += `data: ${textOf(part)}\n\n`
      }
    }
    return this.#raw.write(text)
  }

  get unreadBytes(): number {
    return this.#raw.writableLength
  }

  /** A connection that is gone is told by the system when the next comment is written. */
  alive(): boolean {
    return true
  }

  close(): void {
    const { socket, req } = this.#raw
    // a server that closes would wait for another request on it; one that was injected came over none
    if (socket instanceof Socket && req.httpVersionMajor < 2)
      this.#raw.once('finish', () => this.#server.listening || socket.destroySoon())
    this.#raw.end()
  }

  terminate(): void {
    this.#raw.destroy()
  }

  #scheduleComment(): void {
    this.#comment = this.#clock.after(COMMENT_MS, () => {
      if (!this.#raw.writableNeedDrain) this.#raw.write(': still here\n\n')
      this.#scheduleComment()
    })
  }
}

const isSlice = (part: LogSlice | object | string): part is LogSlice => typeof part === 'object' && 'frames' in part
function textOf(part: object | string): string {
  if (part instanceof MarkedFrame) return part.text
  return typeof part === 'string' ? part : JSON.stringify(part)
}
