import type { Socket } from 'node:net'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { EventsQuery } from '../schemas/events.js'
import type { ServerFrame } from '../schemas/frames.js'
import { SessionParams } from '../schemas/sessions.js'
import { GatewayError, toError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { parseJson } from '../src/lib/json-depth.js'
import { visible } from '../src/principal.js'
import { type Attachment, CLOSE, type ClientSink, type Close } from '../src/sessions/attachment.js'
import type { AttachPosition } from '../src/sessions/clients.js'
import type { LogSlice } from '../src/sessions/event-log.js'
import { encodeTextFrame } from '../src/sessions/frames.js'
import { commandIdOf, parseCommand } from '../src/sessions/parse-command.js'
import type { Session } from '../src/sessions/session.js'
import type { Identify } from './auth.js'
import { expectBadFrames } from './sockets.js'
import type { Stream, Streams } from './streams.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The session that an upgrade was settled for. */
    attachingTo?: Session
  }
}

/** Commands of one socket that may wait for the one before; beyond it nothing more is read. */
const MAX_WAITING_COMMANDS = 64
const MISSED_BEATS = 2

/** The session as a WebSocket. */
export const sessionSocket: FastifyPluginAsyncTypebox<{
  gateway: Gateway
  identify: Identify
  streams: Streams
}> = async (scope, { gateway, identify, streams }) => {
  scope.decorateRequest('attachingTo')
  scope.get(
    '/sessions/:id/ws',
    {
      websocket: true,
      config: { socket: true },
      schema: { params: SessionParams, querystring: EventsQuery },
      preHandler: async (request) => {
        request.attachingTo = await gateway.registry.open(request.params.id, request.principal)
      },
    },
    (socket, request) => {
      if (request.attachingTo)
        new SessionSocket(socket, request.attachingTo, request, { gateway, identify, streams }).open(request.query)
    },
  )
}

/** One client's socket: frames out through its attachment, commands in, one after the other. */
class SessionSocket implements ClientSink, Stream {
  readonly #ws: WebSocket
  /** Written to directly: the log's bytes are frames already, and go out for all clients without a copy. */
  readonly #raw: Socket
  readonly #session: Session
  readonly #request: FastifyRequest
  readonly #identify: Identify
  readonly #streams: Streams
  readonly #maxFrameBytes: number
  #attachment: Attachment | undefined
  #commands: Promise<void> = Promise.resolve()
  #waiting = 0
  #missedBeats = 0

  constructor(
    ws: WebSocket,
    session: Session,
    request: FastifyRequest,
    { gateway, identify, streams }: { gateway: Gateway; identify: Identify; streams: Streams },
  ) {
    this.#ws = ws
    this.#raw = (ws as unknown as { _socket: Socket })._socket
    this.#session = session
    this.#request = request
    this.#identify = identify
    this.#streams = streams
    this.#maxFrameBytes = gateway.options.maxBodyBytes
  }

  /** Sets the listeners before anything is awaited, then attaches. */
  open(position: AttachPosition): void {
    this.#ws.on('message', (data: Buffer, isBinary) => this.#onMessage(data, isBinary))
    this.#ws.on('pong', () => {
      this.#missedBeats = 0
    })
    expectBadFrames(this.#ws, this.#request)
    this.#ws.on('close', () => this.#onClose())
    this.#raw.on('drain', () => this.#attachment?.resume())
    this.#streams.add(this)
    try {
      this.#attachment = this.#session.attach(this, position)
    } catch {
      this.close(CLOSE.tooMany)
    }
  }

  send(parts: readonly (LogSlice | ServerFrame)[]): boolean {
    if (this.#ws.readyState !== this.#ws.OPEN) return true
    let taken = true
    if (parts.length > 1) this.#raw.cork()
    for (const part of parts)
      taken = this.#raw.write('frames' in part ? part.frames : encodeTextFrame(JSON.stringify(part)))
    if (parts.length > 1) this.#raw.uncork()
    return taken
  }

  get holds(): boolean {
    return this.#raw.writableLength > 0
  }

  close({ code, reason }: Close): void {
    this.#ws.close(code, reason)
  }

  terminate(): void {
    this.#ws.terminate()
  }

  beat(): void {
    if (this.#missedBeats >= MISSED_BEATS) {
      this.terminate()
      return
    }
    this.#missedBeats++
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.ping()
    this.#stillWelcome().catch(() => {})
  }

  #onClose(): void {
    this.#streams.delete(this)
    if (this.#attachment) this.#session.detach(this.#attachment)
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#missedBeats = 0
    // who was told to go away is not listened to any more
    if (this.#attachment?.closed !== false) return
    if (data.length > this.#maxFrameBytes) {
      this.close(CLOSE.tooLarge)
      return
    }
    if (++this.#waiting === MAX_WAITING_COMMANDS) this.#ws.pause()
    this.#commands = this.#commands.then(() => this.#carryOut(data, isBinary)).then(() => this.#onCarriedOut())
  }

  #onCarriedOut(): void {
    if (this.#waiting-- === MAX_WAITING_COMMANDS) this.#ws.resume()
  }

  /** Never rejects: whatever a frame holds is answered on this socket alone. */
  async #carryOut(data: Buffer, isBinary: boolean): Promise<void> {
    let id: string | undefined
    try {
      if (isBinary) throw new GatewayError('SG_ERR_VALIDATION', { detail: 'Send commands as text messages.' })
      const frame = parseJson(data.toString())
      id = commandIdOf(frame)
      const command = parseCommand(frame)
      if (!(await this.#stillWelcome())) return
      await this.#session.handle(command, this.#attachment, this.#request.principal)
      if (command.type === 'ping') this.#attachment?.send({ type: 'pong' })
      if (id !== undefined) this.#attachment?.send({ type: 'ack', id })
    } catch (error) {
      const refusal = error instanceof GatewayError ? error : new GatewayError('SG_ERR_INTERNAL', { cause: error })
      if (refusal.statusCode >= 500) this.#request.log.error({ err: toError(error) }, 'a command failed')
      this.#attachment?.send({
        type: 'command_error',
        ...(id !== undefined && { id }),
        code: refusal.code,
        message: refusal.message,
      })
    }
  }

  /** A command over a socket is authenticated like one over REST; so is a socket that only listens, at every beat. */
  async #stillWelcome(): Promise<boolean> {
    try {
      if (visible(await this.#identify(this.#request), this.#session.profile.info.name)) return true
    } catch {
      // told by the close code
    }
    this.#attachment?.close(CLOSE.unauthenticated)
    return false
  }
}
