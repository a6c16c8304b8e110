import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { TestNode } from '../../src/storage/cluster-conformance.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { postgres } from './postgres-world.js'

/** Long enough for a busy machine, short enough to wait for. */
const LEASE_MS = 2_000

let schemas = 0

/**
 * Nodes of one schema, each on a connection of its own that can be cut.
 * @param options.login default: a user that may do everything
 */
export async function clusterWorld(
  t: Test,
  { now = Date.now, login = {} }: { now?: () => number; login?: { user?: string; password?: string } } = {},
) {
  const server = await postgres()
  const schema = `cluster_${++schemas}`
  return {
    server,
    schema,
    async node(name: string, leaseMs = LEASE_MS, profiles: readonly string[] = [], slots = 1): Promise<TestNode> {
      const sockets = new Set<Socket>()
      let isCut = false
      const proxy = createServer((client) => {
        if (isCut) return client.destroy()
        const upstream = connect(server.socket)
        const destroy = () => {
          client.destroy()
          upstream.destroy()
          sockets.delete(client)
        }
        sockets.add(client)
        client.pipe(upstream).pipe(client)
        for (const socket of [client, upstream]) socket.on('error', destroy).on('close', destroy)
      })
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
      const url = server.url({ ...login, host: `127.0.0.1:${(proxy.address() as AddressInfo).port}` })
      const storage = createPostgresStorage({ url, schema, now })
      storage.cluster.announce(
        { name, url: `http://${name}.test`, protocol: 1, version: '1', slots, config: 'c', profiles },
        leaseMs,
      )
      t.teardown(async () => {
        isCut = false
        await storage.close()
        proxy.close()
      })
      await storage.open()
      return {
        storage,
        cut() {
          isCut = true
          for (const socket of sockets) socket.destroy()
        },
        reconnect() {
          isCut = false
        },
      }
    },
  }
}
