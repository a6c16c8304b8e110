import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { CLOSE, type Close } from '../schemas/close-codes.js'
import type { JobQueue } from '../src/jobs/queue.js'
import { QueueFeed, type QueueSink } from '../src/jobs/queue-feed.js'
import { QueueRelay, type QueueRelayOptions, RELAY_PATH } from '../src/jobs/queue-relay.js'
import type { Clock } from '../src/lib/clock.js'
import type { Principal } from '../src/principal.js'
import { StreamClient, type StreamParts } from './streams.js'
import { EVENT_STREAM_HEADERS, eventStreamWire, type OpenWire, socketWire } from './wires.js'

/** A client that leaves this much unread is cut off; it comes back and lists the jobs again. */
const MAX_UNREAD_BYTES = 1024 * 1024

/** The queue as a one-way stream: a WebSocket, and the same frames as server-sent events. */
export const queueStream: FastifyPluginAsyncTypebox<
  StreamParts & { queue: JobQueue; clock: Clock; cluster: QueueRelayOptions['cluster'] | undefined }
> = async (scope, { queue, clock, cluster, ...parts }) => {
  const relay = cluster && new QueueRelay({ cluster, clock, path: `${scope.prefix}${RELAY_PATH}` })
  const feed = new QueueFeed(queue, relay && { relay, clock })
  const open = (wire: OpenWire, request: FastifyRequest) => new QueueClient(wire, request, parts).follow(feed)

  // nothing is expected over it; whatever comes only shows that somebody is there
  scope.get('/queue/ws', { websocket: true, config: { socket: true } }, (socket, request) =>
    open(socketWire(socket, request), request),
  )

  scope.get('/queue/events', { schema: { response: {} } }, async (request, reply) => {
    if (request.method === 'HEAD') return reply.headers(EVENT_STREAM_HEADERS).send()
    open(eventStreamWire(request, reply, clock), request)
    return reply
  })
}

/** One client of the queue. */
class QueueClient extends StreamClient implements QueueSink {
  #place: ReturnType<QueueFeed['attach']> | undefined
  #isGone = false

  follow(feed: QueueFeed): void {
    this.#place = feed.attach(this, this.request.principal)
  }

  send(frame: string): void {
    if (this.#isGone) return
    this.tell([frame])
    if (this.wire.unreadBytes > MAX_UNREAD_BYTES) this.cutOff(CLOSE.tooSlow)
  }

  leave(): void {
    this.close(CLOSE.goingAway)
  }

  protected admits(principal: Principal): boolean {
    this.#place?.becomes(principal)
    return true
  }

  override cutOff(close: Close): void {
    this.#place?.detach()
    this.close(close)
  }

  protected onGone(): void {
    this.#isGone = true
    this.#place?.detach()
  }
}
