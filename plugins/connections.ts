import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import type { Logger } from '../src/lib/logger.js'

/** As long may an upgrade take, and its refusal stay unread. */
const UPGRADE_MS = 60_000
const UPGRADE_TOKEN = /(?:^|,)\s*upgrade\s*(?=,|$)/gi
const RETRY_AFTER_S = 5

/** Connections of one server that asked for a WebSocket and are none yet. Node neither times them out nor closes them with the server. */
export class Upgrades {
  /** With what had been written to each before anybody was asked. */
  readonly #connections = new Map<Duplex, number>()
  /** Those that a listener of the host may answer, and whether one has. */
  readonly #left = new Map<Duplex, () => boolean>()
  readonly #onClose: (this: Duplex) => void
  /** Takes an upgrade that is a gateway's, before the listeners of the host: some of them answer each. */
  take: (request: IncomingMessage, connection: Socket, head: Buffer) => boolean = () => false

  constructor() {
    const connections = this.#connections
    this.#onClose = function () {
      connections.delete(this)
    }
  }

  add(connection: Socket): void {
    this.#connections.set(connection, connection.bytesWritten)
    connection.on('error', destroy)
    // a socket that is accepted has no such limit
    connection.setTimeout?.(UPGRADE_MS)
    connection.on('timeout', destroy)
    connection.on('close', this.#onClose)
  }

  /** What was asked on the same connection before is answered. */
  isNext(connection: Socket): void {
    this.#connections.set(connection, connection.bytesWritten)
  }

  /** Somebody else looks after it from now on. */
  release(connection: Duplex & Partial<Pick<Socket, 'setTimeout'>>): void {
    this.#connections.delete(connection)
    connection.setTimeout?.(0)
    connection.off('error', destroy)
    connection.off('timeout', destroy)
    connection.off('close', this.#onClose)
  }

  /** The host may take it: it is the host's once something is written to it, and ends like any other when nobody does. */
  leave(connection: Socket): void {
    const written = this.#connections.get(connection)!
    const isTaken = () => connection.bytesWritten > written
    this.#connections.delete(connection)
    this.#left.set(connection, isTaken)
    connection.off('timeout', destroy)
    connection.once('timeout', () => {
      if (!isTaken()) connection.destroy()
    })
    connection.once('close', () => this.#left.delete(connection))
  }

  endAll(): void {
    for (const connection of this.#connections.keys()) connection.destroy()
    for (const [connection, isTaken] of this.#left) if (!isTaken()) connection.destroy()
  }
}

const destroy = function (this: Duplex): void {
  this.destroy()
}

/** What came behind the head of a request that asks for a WebSocket. */
const heads = new WeakMap<IncomingMessage, Buffer>()
export const readAhead = (request: IncomingMessage): Buffer | undefined => heads.get(request)

/** By server that a gateway's plugin listens to. */
const upgradesOf = new WeakMap<object, Upgrades>()

/** Node's own decision, from the versions on that let somebody else make it. */
interface DecidingServer extends Server {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean
}

/** Whether Node hands over the connection of this request: for a WebSocket, the one protocol that is spoken here. */
export const isUpgrade = ({ raw: { headers } }: FastifyRequest): boolean =>
  asksForSocket(headers.upgrade) && (headers.connection ?? '').search(UPGRADE_TOKEN) >= 0

const asksForSocket = (protocol: string | undefined): boolean => protocol?.trim().toLowerCase() === 'websocket'

/** Whether its connection is to outlast an answer: a WebSocket or a stream of events. */
export const stays = (request: FastifyRequest): boolean =>
  isUpgrade(request) || (request.headers.accept?.includes('text/event-stream') ?? false)

/**
 * Once per server: an `Upgrade` to anything but `websocket` is ignored (RFC 9110, 7.8), so that who offers `h2c` is answered by the
 * routes, the host's too; and a connection that Node hands over, neither timed out nor closed with the server any more, has an end.
 */
export function ownUpgrades(server: Server): Upgrades {
  const known = upgradesOf.get(server)
  if (known) return known
  const upgrades = new Upgrades()
  upgradesOf.set(server, upgrades)
  decideUpgrades(server)
  const emit = server.emit as (this: Server, event: string, ...args: unknown[]) => boolean
  // the only place before every listener, those of the host included, and of its other addresses
  server.emit = function (this: Server, event: string, ...args: unknown[]) {
    if (event !== 'upgrade') return emit.call(this, event, ...args)
    const [request, connection, head] = args as [IncomingMessage, Socket, Buffer]
    const goOn = () => {
      upgrades.isNext(connection)
      if (asksForSocket(request.headers.upgrade))
        return upgrades.take(request, connection, head) || emit.call(this, event, ...args)
      upgrades.release(connection)
      return replayPlain(this, request, connection, head)
    }
    upgrades.add(connection)
    if (head.length > 0) heads.set(request, head)
    onceAnswered(connection, goOn)
    return true
  }
  return upgrades
}

function decideUpgrades(server: DecidingServer): void {
  const { shouldUpgradeCallback } = server
  if (typeof shouldUpgradeCallback !== 'function') return
  server.shouldUpgradeCallback = (request) =>
    asksForSocket(request.headers.upgrade) && shouldUpgradeCallback.call(server, request)
}

/** Requests that came before on the same connection are answered first. */
function onceAnswered(connection: Socket & { _httpMessage?: NodeJS.EventEmitter | null }, then: () => void): void {
  const answer = connection._httpMessage
  if (answer) answer.once('close', () => onceAnswered(connection, then))
  else if (!connection.destroyed) then()
}

/** Gives a connection back to the server, its request written anew without the wish to upgrade. */
function replayPlain(server: Server, request: IncomingMessage, connection: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    const value = rawHeaders[at + 1]!
    lines.push(`${name}: ${name.toLowerCase() === 'connection' ? withoutUpgrade(value) : value}`)
  }
  connection.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  // that of the address which it came in by
  const owner = (connection as { server?: Server }).server ?? server
  owner.emit(owner instanceof TlsServer ? 'secureConnection' : 'connection', connection)
}

const withoutUpgrade = (connection: string): string => connection.replace(UPGRADE_TOKEN, '').replace(/^\s*,/, '')

/**
 * What every request of a server meets first: what answers an upgrade as any request ends the connection that Node handed over for it,
 * and says so, since nobody else would; and who would stay finds room.
 */
export function watchConnections(fastify: FastifyInstance): void {
  const room = roomOf.get(fastify.server)
  fastify.addHook('onRequest', (request, reply, done) => {
    endUpgrade(request, reply)
    done(room && stays(request) ? room.take(request.raw.socket) : undefined)
  })
}

export function endUpgrade(request: FastifyRequest, reply: FastifyReply): void {
  if (!isUpgrade(request)) return
  const { socket } = reply.raw
  reply.header('connection', 'close')
  reply.raw.once('finish', () => socket?.destroySoon())
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
      return new GatewayError('SG_ERR_TOO_MANY_CONNECTIONS', { retryAfterS: RETRY_AFTER_S })
    }
    this.#taken.add(connection)
    connection.once('close', this.#onClose)
    this.#isTold = false
    return undefined
  }
}
