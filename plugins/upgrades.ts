import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import { writeProblem } from './errors.js'

/** As long may an upgrade take, and its refusal stay unread. */
const UPGRADE_MS = 60_000
const UPGRADE_TOKEN = /(?:^|,)\s*upgrade\s*(?=,|$)/gi

type Connection = Socket & { _httpMessage?: NodeJS.EventEmitter | null }
type Taker = (request: IncomingMessage, connection: Socket, head: Buffer) => boolean

/** Connections of one server that asked for a WebSocket and are none yet. Node neither times them out nor closes them with the server. */
export class Upgrades {
  /** With what had been written to each before anybody was asked. */
  readonly #connections = new Map<Duplex, number>()
  /** Those that a listener of the host may answer. */
  readonly #left = new Map<Socket, number>()
  readonly #onClose: (this: Duplex) => void
  #take: Taker = () => false
  /** The server closes: what comes now is not taken. */
  haveEnded = false

  constructor() {
    const connections = this.#connections
    this.#onClose = function () {
      connections.delete(this)
    }
  }

  /** @param take takes one that is a gateway's: the listeners of the host are not asked, some of which answer each */
  takenBy(take: Taker): void {
    this.#take = take
  }

  add(connection: Socket): void {
    this.#connections.set(connection, connection.bytesWritten)
    connection.on('error', destroy)
    // a socket that is accepted has no such limit
    connection.setTimeout?.(UPGRADE_MS)
    connection.on('timeout', destroy)
    connection.on('close', this.#onClose)
  }

  /** @param ask asks all who listen */
  handOn(request: IncomingMessage, connection: Connection, head: Buffer, ask: () => void): void {
    const written = connection.bytesWritten
    this.#connections.set(connection, written)
    if (this.haveEnded || !this.#take(request, connection, head)) ask()
    // of what the router answers as any request nobody reads on, whichever hook has answered it
    connection._httpMessage?.once('finish', () => connection.destroySoon())
    // the server would wait for it
    if (this.haveEnded && !connection._httpMessage && !isAnswered(connection, written)) {
      writeProblem(connection, new GatewayError('SG_ERR_SHUTTING_DOWN'))
      connection.destroySoon()
    }
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
    this.#connections.delete(connection)
    this.#left.set(connection, written)
    connection.off('timeout', destroy)
    connection.once('timeout', () => {
      if (!isAnswered(connection, written)) connection.destroy()
    })
    connection.once('close', () => this.#left.delete(connection))
  }

  endAll(): void {
    this.haveEnded = true
    for (const connection of this.#connections.keys()) connection.destroy()
    for (const [connection, written] of this.#left) if (!isAnswered(connection, written)) connection.destroy()
  }
}

const isAnswered = (connection: Socket, written: number): boolean => connection.bytesWritten > written

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
  // a host may be built anew around its server
  server.on('listening', () => {
    upgrades.haveEnded = false
  })
  const emit = server.emit as (this: Server, event: string, ...args: unknown[]) => boolean
  // the only place before every listener, those of the host included, and of its other addresses
  server.emit = function (this: Server, event: string, ...args: unknown[]) {
    if (event !== 'upgrade') return emit.call(this, event, ...args)
    const [request, connection, head] = args as [IncomingMessage, Socket, Buffer]
    const goOn = () => {
      if (asksForSocket(request.headers.upgrade))
        return upgrades.handOn(request, connection, head, () => emit.call(this, event, ...args))
      upgrades.release(connection)
      replayPlain(this, request, connection, head)
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
function onceAnswered(connection: Connection, then: () => void): void {
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
