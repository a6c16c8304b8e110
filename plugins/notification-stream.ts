import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Close } from '../schemas/close-codes.js'
import { FollowNotificationsQuery } from '../schemas/notifications.js'
import { invalidField } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { filterOf, isNotificationId } from '../src/notifications/feed.js'
import { type FeedFrame, FeedReader, type FeedSink } from '../src/notifications/feed-reader.js'
import type { Principal } from '../src/principal.js'
import { addToRequests } from './request-members.js'
import { StreamClient, type StreamParts } from './streams.js'
import { EVENT_STREAM_HEADERS, eventStreamWire, MarkedFrame, socketWire } from './wires.js'

type Place = Awaited<ReturnType<Gateway['notifications']['feed']['placeAfter']>>

declare module 'fastify' {
  interface FastifyRequest {
    /** Where a reader of the feed goes on that an upgrade was settled for. */
    readingFrom?: Place
  }
}

/** All notifications on one connection: what was missed, then what happens, and when the inbox changes. */
export const notificationStream: FastifyPluginAsyncTypebox<StreamParts & { gateway: Gateway }> = async (
  scope,
  { gateway, ...parts },
) => {
  const { notifications, clock } = gateway
  addToRequests(scope, 'readingFrom')

  // nothing is expected over it; whatever comes only shows that somebody is there
  scope.get(
    '/notifications/ws',
    {
      websocket: true,
      config: { socket: true },
      schema: { querystring: FollowNotificationsQuery },
      preHandler: async (request) => {
        request.readingFrom = await notifications.feed.placeAfter(request.query.after)
      },
    },
    (socket, request) => {
      const { readingFrom } = request
      if (readingFrom) new FeedClient(socketWire(socket, request), request, parts).follow(notifications, readingFrom)
    },
  )

  scope.get(
    '/notifications/events',
    { schema: { querystring: FollowNotificationsQuery, response: {} } },
    async (request, reply) => {
      const place = await notifications.feed.placeAfter(lastEventId(request) ?? request.query.after)
      if (request.method === 'HEAD') return reply.headers(EVENT_STREAM_HEADERS).send()
      new FeedClient(eventStreamWire(request, reply, clock), request, parts).follow(notifications, place)
      return reply
    },
  )
}

function lastEventId({ headers }: FastifyRequest): string | undefined {
  const given = headers['last-event-id']
  if (given === undefined || given === '') return undefined
  const id = String(given)
  if (!isNotificationId(id)) throw invalidField('Last-Event-ID', 'is not one that this gateway gave out.')
  return id
}

/** One client of the feed. */
class FeedClient extends StreamClient implements FeedSink {
  #reader: FeedReader | undefined

  follow(notifications: Gateway['notifications'], place: Place): void {
    const { query, principal } = this.request
    const filter = filterOf(query as FollowNotificationsQuery)
    this.#reader = new FeedReader(notifications, this, place, { filter, principal })
  }

  write(frames: readonly FeedFrame[]): boolean {
    return this.tell(frames.map(({ id, text }) => (id === undefined ? text : new MarkedFrame(id, text))))
  }

  protected admits(principal: Principal): boolean {
    this.#reader?.becomes(principal)
    return true
  }

  override cutOff(close: Close): void {
    if (this.#reader) this.#reader.close(close)
    else this.close(close)
  }

  protected override onDrain(): void {
    this.#reader?.resume()
  }

  protected onGone(): void {
    this.#reader?.detach()
  }
}
