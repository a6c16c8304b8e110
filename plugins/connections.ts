import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import type { Logger } from '../src/lib/logger.js'
import { isUpgrade } from './upgrades.js'

/** Whether its connection is to outlast an answer: a WebSocket or a stream of events. */
export const stays = (request: FastifyRequest): boolean =>
  isUpgrade(request) || (request.headers.accept?.includes('text/event-stream') ?? false)

/**
 * What every request of a server meets first: what answers an upgrade as any request says that the connection ends, since nobody else
 * would; and who would stay finds room.
 */
export function watchConnections(fastify: FastifyInstance): void {
  const room = roomOf.get(fastify.server)
  fastify.addHook('onRequest', (request, reply, done) => {
    announceEnd(request, reply)
    done(room && stays(request) ? room.take(request.raw.socket) : undefined)
  })
}

export function announceEnd(request: FastifyRequest, reply: FastifyReply): void {
  if (isUpgrade(request)) reply.header('connection', 'close')
}

/** Of the descriptors that a process may have, what is left for files, agents and webhooks is not given to clients. */
function connectionsFor(descriptors: number): { connections: number; staying: number } {
  const kept = Math.min(Math.max(256, descriptors / 8), descriptors / 2)
  const connections = Math.floor(descriptors - kept)
  return { connections, staying: Math.floor((connections * 7) / 8) }
}

/** By server of our own. */
const roomOf = new WeakMap<object, Room>()

/**
 * For a server of our own: who would stay is refused while there are descriptors left to say so with. Without this the process runs out
 * of them, and then every new connection is reset, and no file is opened and no webhook delivered.
 */
export function limitConnections(server: Server, descriptors: number, logger: Logger): void {
  if (!Number.isFinite(descriptors)) return
  const { connections, staying } = connectionsFor(descriptors)
  // beyond it Node closes what it accepted, at once
  server.maxConnections = connections
  roomOf.set(server, new Room(staying, () => logger.warn({ held: staying, descriptors }, NO_ROOM)))
}

const NO_ROOM =
  'new sockets and streams are refused: raise the limit of file descriptors (LimitNOFILE in the systemd unit)'

/** For connections that stay; fewer than there are in all, so that requests are still answered beside them. */
class Room {
  readonly #size: number
  readonly #onFull: () => void
  readonly #taken = new Set<Socket>()
  readonly #onClose: (this: Socket) => void
  #isTold = false

  /** @param onFull called with the first that is refused since one was let in */
  constructor(size: number, onFull: () => void) {
    this.#size = size
    this.#onFull = onFull
    const taken = this.#taken
    this.#onClose = function () {
      taken.delete(this)
    }
  }

  /** @returns why there is no room for it */
  take(connection: Socket): GatewayError | undefined {
    if (this.#taken.has(connection)) return undefined
    if (this.#taken.size >= this.#size) {
      if (!this.#isTold) this.#onFull()
      this.#isTold = true
      return new GatewayError('SG_ERR_TOO_MANY_CONNECTIONS')
    }
    this.#taken.add(connection)
    connection.once('close', this.#onClose)
    this.#isTold = false
    return undefined
  }
}
