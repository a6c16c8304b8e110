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

/** Sockets are the server's business, so the plugin stands at the outer level; a host may have brought its own. */
export async function ensureWebSockets(fastify: FastifyInstance, { options }: Gateway): Promise<void> {
  if (fastify.hasDecorator('websocketServer')) return
  const upgrading = trackUpgrades(fastify)
  await fastify.register(websocket, {
    options: {
      maxPayload: options.maxBodyBytes,
      perMessageDeflate: false,
      // its types differ between the module systems
      WebSocket: ReasonedWebSocket as never,
    },
    // ours have been told to go away by then; closing the rest at once keeps close() from waiting for clients
    preClose(done) {
      for (const client of this.websocketServer.clients) client.terminate()
      for (const connection of upgrading) connection.destroy()
      this.websocketServer.close()
      done()
    },
  })
}

/** Connections that asked for an upgrade: Node hands them over and neither times them out nor closes them with the server. */
function trackUpgrades(fastify: FastifyInstance): ReadonlySet<Duplex> {
  const connections = new Set<Duplex>()
  fastify.server.on('upgrade', (_request, connection: Duplex) => {
    connections.add(connection)
    connection.once('close', () => connections.delete(connection))
  })
  return connections
}
