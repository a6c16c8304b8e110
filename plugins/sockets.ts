import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import websocket from '@fastify/websocket'
import type { FastifyInstance } from 'fastify'
import WebSocket from 'ws'
import type { Gateway } from '../src/gateway.js'
import { CLOSE } from '../src/sessions/attachment.js'

/** Why `ws` itself ends a connection: over a frame that it does not take. */
const REASONS: Record<number, string> = {
  1002: 'protocol_error',
  1007: 'invalid_utf8',
  [CLOSE.tooLarge.code]: CLOSE.tooLarge.reason,
}

/** Every close carries a reason, those that `ws` decides on too. */
class ReasonedWebSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    super.close(code, reason ?? (code === undefined ? undefined : REASONS[code]))
  }
}

/** As long may an upgrade take, and its refusal stay unread. */
const UPGRADE_MS = 60_000
/** By server that a gateway's plugin listens to: connections that asked for an upgrade and are no sockets yet. */
const upgrades = new WeakMap<Server, Set<Duplex>>()
const ours = new WeakSet<object>()

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
  if (host.hasDecorator('websocketServer') && !ours.has(host.websocketServer)) return
  const isDispatched = upgrades.has(server)
  const upgrading = upgrades.get(server) ?? trackUpgrades(server)
  await scope.register(websocket, {
    options: {
      maxPayload: options.maxBodyBytes,
      perMessageDeflate: false,
      // its types differ between the module systems
      WebSocket: ReasonedWebSocket as never,
      // one of them hands every upgrade to the router; a second one would do so again
      ...(isDispatched && { server: new EventEmitter() as Server }),
    },
    // ours have been told to go away by then; closing the rest at once keeps close() from waiting for clients
    preClose(done) {
      for (const client of this.websocketServer.clients) client.terminate()
      for (const connection of upgrading) connection.destroy()
      this.websocketServer.close()
      done()
    },
  })
  scope.websocketServer.on('connection', (_socket, { socket }) => upgrading.delete(socket))
  ours.add(scope.websocketServer)
  if (!host.hasDecorator('websocketServer')) host.decorate('websocketServer', scope.websocketServer)
  host.addHook('onRoute', ({ url, websocket, wsHandler, config }) => {
    if ((websocket || wsHandler) && !config?.socket)
      throw new Error(`${url} is a WebSocket of its own: register @fastify/websocket before the gateway.`)
  })
}

/** Node hands over the connections of upgrades and neither times them out nor closes them with the server. */
function trackUpgrades(server: Server): Set<Duplex> {
  const connections = new Set<Duplex>()
  upgrades.set(server, connections)
  server.on('upgrade', (_request, connection: Duplex) => {
    connections.add(connection)
    // a socket that is accepted has no such limit
    ;(connection as Socket).setTimeout?.(UPGRADE_MS, () => connection.destroy())
    connection.once('close', () => connections.delete(connection))
  })
  return connections
}
