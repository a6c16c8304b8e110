import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import websocket from '@fastify/websocket'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import WebSocket from 'ws'
import { CLOSE, closeRow } from '../schemas/close-codes.js'
import type { Gateway } from '../src/gateway.js'
import { sourceOf } from './own-place.js'
import { ownUpgrades, type Upgrades } from './upgrades.js'

/** Every close carries a reason, those that `ws` decides on too. */
class ReasonedWebSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    super.close(code, reason ?? closeRow(code)?.reason)
  }
}

const ours = new WeakSet<object>()
/** The paths of gateways, by server whose upgrades one of ours hands to the router. */
const pathsOf = new WeakMap<object, RegExp[]>()

/**
 * Lets the routes of a scope be sockets. The plugin stands in that scope alone: its hooks and wrappers are nothing to other routes, ours
 * or the host's. A host may have brought its own before; one that comes later would answer every upgrade a second time, and is refused.
 */
export async function openToWebSockets(
  host: FastifyInstance,
  scope: FastifyInstance,
  { options }: Gateway,
): Promise<void> {
  const { server } = host
  const upgrades = ownUpgrades(server)
  if (host.hasDecorator('websocketServer') && !ours.has(host.websocketServer)) {
    host.websocketServer.on('connection', (_socket, { socket }) => upgrades.release(socket))
    host.addHook('preClose', async () => upgrades.endAll())
    return
  }
  const paths = pathsOf.get(server)
  if (paths) paths.push(below(scope.prefix))
  else pathsOf.set(server, [below(scope.prefix)])
  await scope.register(websocket, {
    options: {
      maxPayload: options.maxBodyBytes,
      perMessageDeflate: false,
      // its types differ between the module systems
      WebSocket: ReasonedWebSocket as never,
      // one of them hands upgrades to the router; a second one would do so again
      server: paths ? (new EventEmitter() as Server) : upgradesForRouter(server, upgrades),
    },
    // ours have been told to go away by then; closing the rest at once keeps close() from waiting for clients
    preClose(done) {
      for (const client of this.websocketServer.clients) client.terminate()
      upgrades.endAll()
      this.websocketServer.close()
      done()
    },
  })
  scope.websocketServer.on('connection', (_socket, { socket }) => upgrades.release(socket))
  ours.add(scope.websocketServer)
  if (!host.hasDecorator('websocketServer')) host.decorate('websocketServer', scope.websocketServer)
  host.addHook('onRoute', ({ url, websocket, wsHandler, config }) => {
    if ((websocket || wsHandler) && !config?.socket)
      throw new Error(`${url} is a WebSocket of its own: register @fastify/websocket before the gateway.`)
  })
}

/** Matches the paths below a prefix, in which a host may have parameters: these match anything. */
const below = (prefix: string): RegExp => new RegExp(`^${sourceOf(prefix.replace(/\/$/, ''))}(?=[/?]|$)`, 'i')

/** The router has those to a gateway, and all others where nobody else listens: else they are for the sockets of the host. */
function upgradesForRouter(server: Server, upgrades: Upgrades): Server {
  const handedOn = new EventEmitter()
  upgrades.takenBy(
    (request, connection, head) =>
      pathsOf.get(server)!.some((path) => path.test(request.url ?? '')) &&
      handedOn.emit('upgrade', request, connection, head),
  )
  server.on('upgrade', (request, connection: Socket & { _httpMessage?: unknown }, head) => {
    // a plugin of the host has given it to the router
    if (connection._httpMessage || upgrades.haveEnded) return
    if (server.listenerCount('upgrade') === 1) handedOn.emit('upgrade', request, connection, head)
    else upgrades.leave(connection)
  })
  return handedOn as Server
}

/** The plugin of a host that has its own closes every socket without a word when the host ends, before the gateway is asked to. */
export function sayWhyItCloses(socket: WebSocket & { _closeFrameReceived?: boolean }): void {
  const close = socket.close.bind(socket)
  socket.close = (code, reason) => {
    // as `ws` answers a client that went without a code
    if (code === undefined && socket._closeFrameReceived) return close()
    const said = code ?? CLOSE.goingAway.code
    close(said, reason ?? closeRow(said)?.reason)
  }
}

/**
 * What a client does to its connection, frames that are none included, is no error of ours: the close code tells it, and a line for who
 * looks closely. The listener that was set with the socket would report it as one.
 */
export function expectBadFrames(socket: WebSocket, { log }: FastifyRequest): void {
  socket.removeAllListeners('error')
  socket.on('error', (error: NodeJS.ErrnoException) =>
    log.debug({ code: error.code, reason: error.message }, 'a client broke its connection'),
  )
}
