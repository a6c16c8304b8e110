import type { ServerResponse } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import type { JobQueue } from '../src/jobs/queue.js'
import { QueueFeed, type QueueSink } from '../src/jobs/queue-feed.js'
import type { Clock, Timer } from '../src/lib/clock.js'
import { CLOSE, type Close } from '../src/sessions/attachment.js'
import type { Identify } from './auth.js'
import { corsHeaders } from './cors.js'
import { expectBadFrames } from './sockets.js'
import type { Stream, Streams } from './streams.js'

/** A client that leaves this much unread is cut off; it comes back and lists the jobs again. */
const MAX_UNREAD_BYTES = 1024 * 1024
const COMMENT_MS = 15_000
const MISSED_BEATS = 2

/** What carries the stream to a client. */
interface Wire {
  write(frame: string): void
  readonly unreadBytes: number
  /** Asks whether the client is there; false when it did not answer for too long. */
  alive(): boolean
  close(close: Close): void
  terminate(): void
}

interface Parts {
  queue: JobQueue
  identify: Identify
  streams: Streams
  clock: Clock
}

/** The queue as a one-way stream: a WebSocket, and the same frames as server-sent events. */
export const queueStream: FastifyPluginAsyncTypebox<Parts> = async (scope, { queue, identify, streams, clock }) => {
  const feed = new QueueFeed(queue)
  const open = (wire: Wire, request: FastifyRequest) => new QueueClient(wire, request, { feed, identify, streams })

  scope.get('/queue/ws', { websocket: true, config: { socket: true } }, (socket, request) => {
    const wire = new SocketWire(socket)
    const client = open(wire, request)
    // nothing is expected; whatever comes only shows that somebody is there
    socket.on('message', () => wire.heard())
    socket.on('pong', () => wire.heard())
    expectBadFrames(socket, request)
    socket.on('close', () => client.onGone())
    client.start()
  })

  scope.get('/queue/events', { schema: { response: {} } }, async (request, reply) => {
    const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' }
    if (request.method === 'HEAD') return reply.headers(headers).send()
    reply.hijack()
    const { raw } = reply
    const wire = new EventStreamWire(raw, clock)
    const client = open(wire, request)
    raw.on('error', (error) => request.log.debug({ err: error }, 'event stream error'))
    raw.on('close', () => {
      wire.stop()
      client.onGone()
    })
    raw.writeHead(200, { ...corsHeaders(reply), ...headers, 'x-accel-buffering': 'no' })
    raw.flushHeaders()
    client.start()
    return reply
  })
}

/** One client, whatever carries its frames. */
class QueueClient implements QueueSink, Stream {
  readonly #wire: Wire
  readonly #request: FastifyRequest
  readonly #parts: { feed: QueueFeed; identify: Identify; streams: Streams }
  #place: ReturnType<QueueFeed['attach']> | undefined
  #gone = false

  constructor(wire: Wire, request: FastifyRequest, parts: { feed: QueueFeed; identify: Identify; streams: Streams }) {
    this.#wire = wire
    this.#request = request
    this.#parts = parts
  }

  start(): void {
    this.#parts.streams.add(this)
    this.#place = this.#parts.feed.attach(this, this.#request.principal)
  }

  onGone(): void {
    this.#gone = true
    this.#place?.detach()
    this.#parts.streams.delete(this)
  }

  send(frame: string): void {
    if (this.#gone) return
    this.#wire.write(frame)
    if (this.#wire.unreadBytes > MAX_UNREAD_BYTES) this.#cutOff(CLOSE.tooSlow)
  }

  leave(): void {
    this.close(CLOSE.goingAway)
  }

  close(close: Close): void {
    this.#wire.close(close)
  }

  terminate(): void {
    this.#wire.terminate()
  }

  beat(): void {
    if (!this.#wire.alive()) {
      this.terminate()
      return
    }
    Promise.resolve(this.#parts.identify(this.#request)).then(
      (principal) => this.#place?.becomes(principal),
      () => this.#cutOff(CLOSE.unauthenticated),
    )
  }

  #cutOff(close: Close): void {
    this.#place?.detach()
    this.#wire.close(close)
  }
}

class SocketWire implements Wire {
  readonly #socket: WebSocket
  #missedBeats = 0

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  get unreadBytes(): number {
    return this.#socket.bufferedAmount
  }

  write(frame: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(frame)
  }

  heard(): void {
    this.#missedBeats = 0
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
}

class EventStreamWire implements Wire {
  readonly #raw: ServerResponse
  readonly #clock: Clock
  #comment: Timer | undefined

  constructor(raw: ServerResponse, clock: Clock) {
    this.#raw = raw
    this.#clock = clock
    this.#schedule()
  }

  get unreadBytes(): number {
    return this.#raw.writableLength
  }

  write(frame: string): void {
    this.#raw.write(`data: ${frame}\n\n`)
  }

  /** A connection that is gone is told by the system when the next comment is written. */
  alive(): boolean {
    return true
  }

  close(): void {
    this.#raw.end()
  }

  terminate(): void {
    this.#raw.destroy()
  }

  stop(): void {
    this.#comment?.cancel()
  }

  #schedule(): void {
    this.#comment = this.#clock.after(COMMENT_MS, () => {
      if (!this.#raw.writableNeedDrain) this.#raw.write(': still here\n\n')
      this.#schedule()
    })
  }
}
