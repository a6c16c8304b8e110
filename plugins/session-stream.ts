import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { CLOSE, type Close } from '../schemas/close-codes.js'
import { EventsQuery, ListEventsQuery, ListEventsResponse } from '../schemas/events.js'
import { SessionParams } from '../schemas/sessions.js'
import { asRefusal, GatewayError, invalidField, toError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { parseJson } from '../src/lib/json-depth.js'
import { type Checker, compileSchema } from '../src/lib/validation.js'
import { type Principal, visible } from '../src/principal.js'
import type { Attachment, ClientSink } from '../src/sessions/clients/attachment.js'
import type { AttachPosition } from '../src/sessions/clients/clients.js'
import { commandIdOf, parseCommand } from '../src/sessions/clients/parse-command.js'
import { eventsPage } from '../src/sessions/log/events-page.js'
import type { Session } from '../src/sessions/session.js'
import { answerAsAccepted, prefersEventStream } from './accept.js'
import { tellFailure } from './error-log.js'
import { addToRequests } from './request-members.js'
import { StreamClient, type StreamParts } from './streams.js'
import { eventStreamWire, type OpenWire, type SocketWire, socketWire, type Wire } from './wires.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The session that an upgrade was settled for. */
    attachingTo?: Session
  }
}

/** Commands of one socket that may wait for the one before; beyond it nothing more is read. */
const MAX_WAITING_COMMANDS = 64

/** The session as a WebSocket. */
export const sessionSocket: FastifyPluginAsyncTypebox<StreamParts & { gateway: Gateway }> = async (
  scope,
  { gateway, ...parts },
) => {
  const { registry, options } = gateway
  addToRequests(scope, 'attachingTo')
  scope.get(
    '/sessions/:id/ws',
    {
      websocket: true,
      config: { socket: true, owner: 'session' },
      schema: { params: SessionParams, querystring: EventsQuery },
      preHandler: async (request) => {
        request.attachingTo = await registry.open(request.params.id, request.principal)
      },
    },
    (socket, request) => {
      const { attachingTo: session } = request
      if (!session) return
      const client = new SocketClient(socketWire(socket, request), session, request, parts, options.maxBodyBytes)
      client.attach(request.query)
    },
  )
}

/** The session's log without a socket: as server-sent events, or in JSON pages. */
export const sessionEvents: FastifyPluginAsyncTypebox<StreamParts & { gateway: Gateway }> = async (
  scope,
  { gateway, ...parts },
) => {
  scope.get(
    '/sessions/:id/events',
    {
      config: { owner: 'session' },
      schema: {
        params: SessionParams,
        querystring: EventsQuery,
        response: { 200: Type.Unsafe<Buffer>(ListEventsResponse), 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const session = await gateway.registry.open(request.params.id, request.principal)
      if (!wantsStream(request)) {
        pageQuery.assert(request.query)
        const page = await eventsPage(session, request.query)
        return answerAsAccepted(reply).type('application/json; charset=utf-8').send(page)
      }
      const position = lastEventId(request) ?? request.query
      // an EventSource that was told everything would come back for ever; 204 ends it
      if (session.ended && position.afterSeq === session.log.visibleSeq && position.epoch === session.log.epoch)
        return reply.code(204).send(null)
      session.clients.assertRoom()
      new SessionClient(eventStreamWire(request, reply, gateway.clock), session, request, parts).attach(position)
      return reply
    },
  )
}

const pageQuery: Checker<EventsQuery> = compileSchema(ListEventsQuery)

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

/** One client of a session: its log and its frames, through an attachment. */
class SessionClient<W extends Wire = Wire> extends StreamClient<W> implements ClientSink {
  protected readonly session: Session
  protected attachment: Attachment | undefined

  constructor(open: OpenWire<W>, session: Session, request: FastifyRequest, parts: StreamParts) {
    super(open, request, parts)
    this.session = session
  }

  attach(position: AttachPosition): void {
    try {
      this.attachment = this.session.attach(this, position)
    } catch {
      this.close(CLOSE.tooMany)
    }
  }

  protected admits(principal: Principal): boolean {
    return visible(principal, this.session.profile.info.name)
  }

  override cutOff(close: Close): void {
    this.attachment?.close(close)
  }

  protected onGone(): void {
    if (this.attachment) this.session.detach(this.attachment)
  }

  protected override onDrain(): void {
    this.attachment?.resume()
  }
}

/** One client's socket: what every client of a session is told, and commands in, one after the other. */
class SocketClient extends SessionClient<SocketWire> {
  readonly #maxFrameBytes: number
  #commands: Promise<void> = Promise.resolve()
  #waiting = 0

  constructor(
    open: OpenWire<SocketWire>,
    session: Session,
    request: FastifyRequest,
    parts: StreamParts,
    maxFrameBytes: number,
  ) {
    super(open, session, request, parts)
    this.#maxFrameBytes = maxFrameBytes
  }

  protected override onMessage(data: Buffer, isBinary: boolean): void {
    // who was told to go away is not listened to any more
    if (this.attachment?.closed !== false) return
    if (data.length > this.#maxFrameBytes) {
      this.close(CLOSE.tooLarge)
      return
    }
    if (++this.#waiting === MAX_WAITING_COMMANDS) this.wire.pause()
    this.#commands = this.#commands.then(() => this.#carryOut(data, isBinary))
  }

  /** Never rejects: whatever a frame holds is answered on this socket alone. */
  async #carryOut(data: Buffer, isBinary: boolean): Promise<void> {
    let id: string | undefined
    try {
      const { listensAgain } = this.parts.streams
      if (listensAgain) {
        await listensAgain
        if (this.attachment?.closed !== false) return
      }
      if (isBinary) throw new GatewayError('SG_ERR_VALIDATION', { detail: 'Send commands as text messages.' })
      const frame = parseJson(data.toString())
      id = commandIdOf(frame)
      const command = parseCommand(frame)
      // over a socket it is authenticated as it is over REST
      if (!(await this.stillWelcome())) return
      if (command.type !== 'ping') this.parts.streams.onUsed(this.request)
      await this.session.handle(command, this.attachment, this.request.principal)
      if (command.type === 'ping') this.attachment?.send({ type: 'pong' })
      if (id !== undefined) this.attachment?.send({ type: 'ack', id })
    } catch (error) {
      const refusal = asRefusal(error)
      if (refusal.statusCode >= 500) tellFailure(this.request, { err: toError(error) }, 'a command failed')
      this.attachment?.send({
        type: 'command_error',
        ...(id !== undefined && { id }),
        code: refusal.code,
        message: refusal.message,
      })
    } finally {
      if (this.#waiting-- === MAX_WAITING_COMMANDS) this.wire.resume()
    }
  }
}
