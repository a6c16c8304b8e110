import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { EventsQuery, ListEventsResponse } from '../schemas/events.js'
import type { ServerFrame } from '../schemas/frames.js'
import { SessionParams } from '../schemas/sessions.js'
import { invalidField } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import type { Clock, Timer } from '../src/lib/clock.js'
import { visible } from '../src/principal.js'
import { type Attachment, CLOSE, type ClientSink } from '../src/sessions/attachment.js'
import type { AttachPosition } from '../src/sessions/clients.js'
import type { LogSlice } from '../src/sessions/event-log.js'
import { eventsPage } from '../src/sessions/events-page.js'
import type { Session } from '../src/sessions/session.js'
import { prefersEventStream } from './accept.js'
import type { Identify } from './auth.js'
import { corsHeaders } from './cors.js'
import type { Stream, Streams } from './streams.js'

const COMMENT_MS = 15_000

/** The session's log without a socket: as server-sent events, or in JSON pages. */
export const sessionEvents: FastifyPluginAsyncTypebox<{
  gateway: Gateway
  identify: Identify
  streams: Streams
}> = async (scope, { gateway, identify, streams }) => {
  scope.get(
    '/sessions/:id/events',
    {
      schema: {
        params: SessionParams,
        querystring: EventsQuery,
        response: { 200: Type.Unsafe<Buffer>(ListEventsResponse), 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const session = await gateway.registry.open(request.params.id, request.principal)
      if (!wantsStream(request))
        return reply.type('application/json; charset=utf-8').send(await eventsPage(session, request.query))
      const position = lastEventId(request) ?? request.query
      // an EventSource that was told everything would come back for ever; 204 ends it
      if (session.ended && position.afterSeq === session.log.visibleSeq && position.epoch === session.log.epoch)
        return reply.code(204).send(null)
      session.clients.assertRoom()
      reply.hijack()
      new SessionEventStream(reply.raw, session, request, { gateway, identify, streams }).open(
        position,
        corsHeaders(reply),
      )
      return reply
    },
  )
}

const wantsStream = (request: FastifyRequest): boolean =>
  request.method === 'GET' && prefersEventStream(request.headers.accept)

/** `<epoch>:<seq>`, as every event's id is. */
function lastEventId(request: FastifyRequest): AttachPosition | undefined {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return undefined
  const match = /^([^:]*):(\d{1,15})$/.exec(String(header))
  if (!match) throw invalidField('Last-Event-ID', 'is not one that this gateway gave out.')
  return { epoch: match[1], afterSeq: Number(match[2]) }
}

/** One client's stream of server-sent events: the frames of the socket as `data`. */
class SessionEventStream implements ClientSink, Stream {
  /** What it writes is text of its own. */
  readonly holds = false
  readonly #raw: ServerResponse
  readonly #session: Session
  readonly #request: FastifyRequest
  readonly #identify: Identify
  readonly #streams: Streams
  readonly #clock: Clock
  #attachment: Attachment | undefined
  #comment: Timer | undefined

  constructor(
    raw: ServerResponse,
    session: Session,
    request: FastifyRequest,
    { gateway, identify, streams }: { gateway: Gateway; identify: Identify; streams: Streams },
  ) {
    this.#raw = raw
    this.#session = session
    this.#request = request
    this.#identify = identify
    this.#streams = streams
    this.#clock = gateway.clock
  }

  open(position: AttachPosition, headers: OutgoingHttpHeaders): void {
    this.#raw.on('close', () => this.#onClose())
    this.#raw.on('drain', () => this.#attachment?.resume())
    this.#raw.on('error', (error) => this.#request.log.debug({ err: error }, 'event stream error'))
    this.#raw.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    this.#raw.flushHeaders()
    this.#streams.add(this)
    this.#scheduleComment()
    this.#attachment = this.#session.attach(this, position)
  }

  send(parts: readonly (LogSlice | ServerFrame)[]): boolean {
    const { epoch } = this.#session.log
    let text = ''
    for (const part of parts) {
      if ('frames' in part)
        for (const { seq, json } of part.events())
          text += `id: ${epoch}:${seq}\ndata: {"type":"event","event":${json}}\n\n`
      else text += `data: ${JSON.stringify(part)}\n\n`
    }
    return this.#raw.write(text)
  }

  close(): void {
    this.#raw.end()
  }

  terminate(): void {
    this.#raw.destroy()
  }

  beat(): void {
    Promise.resolve(this.#identify(this.#request)).then(
      (principal) => {
        if (!visible(principal, this.#session.profile.info.name)) this.#attachment?.close(CLOSE.unauthenticated)
      },
      () => this.#attachment?.close(CLOSE.unauthenticated),
    )
  }

  #scheduleComment(): void {
    this.#comment = this.#clock.after(COMMENT_MS, () => {
      if (!this.#raw.writableNeedDrain) this.#raw.write(': still here\n\n')
      this.#scheduleComment()
    })
  }

  #onClose(): void {
    this.#comment?.cancel()
    this.#streams.delete(this)
    if (this.#attachment) this.#session.detach(this.#attachment)
  }
}
