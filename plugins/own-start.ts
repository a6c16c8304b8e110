import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'

/** What a server hands on: connections whole, so that upgrades wait too, and what a host with a server of its own hands over. */
const COMING = new Set(['connection', 'request', 'upgrade'])

/**
 * For a server of our own that its host lets listen by itself, as tools for tests do: that starts the gateway, and who comes meanwhile
 * is heard once it has started. Fastify has no routes until then, and a request would end the process.
 * @param start may be called often, and does it once
 */
export function startWithServer(server: Server, start: () => Promise<void>): void {
  let hasStarted = false
  const started = async () => {
    await start()
    hasStarted = true
    // every request is told by it
    if (server.emit === waiting) server.emit = emit
  }
  server.once('listening', () => void started().catch(() => {}))
  const emit = server.emit as (this: Server, event: string, ...args: unknown[]) => boolean
  const waiting: typeof emit = function (event, ...args) {
    if (hasStarted || !COMING.has(event)) return emit.call(this, event, ...args)
    const [first] = args as [Duplex & { socket?: Duplex }]
    const connection = event === 'connection' ? first : (first.socket ?? first)
    const leave = () => connection.destroy()
    connection.once('error', leave)
    void started().then(() => {
      connection.off('error', leave)
      if (!connection.destroyed) emit.call(this, event, ...args)
    }, leave)
    return true
  }
  server.emit = waiting
}
