import type { FastifyInstance } from 'fastify'
import { optionError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { HopListener } from './hops.js'
import { Splices } from './splices.js'

interface ClusterParts {
  splices: Splices
  /** Before the gateway starts, which tells the other nodes where they reach this one. */
  listen?: () => Promise<void>
  leave?: () => Promise<void>
}

/** What a node has beside its routes: where the other nodes reach them, and the sockets that are theirs. */
export function clusterParts({ server }: FastifyInstance, gateway: Gateway): ClusterParts {
  const splices = new Splices()
  const { cluster } = gateway
  if (!cluster) return { splices }
  const listener = new HopListener(cluster, gateway, server)
  cluster.onNodes((nodes) => splices.keep(nodes))
  return {
    splices,
    async listen() {
      const { host, port } = cluster.options.listen
      const listening = listener.listen().catch((error: NodeJS.ErrnoException) => {
        const taken = error.code === 'EADDRINUSE' ? ': another process does' : `: ${error.message}`
        throw optionError('cluster.listen', `this node cannot listen on ${host}:${port}${taken}.`, error)
      })
      cluster.listensOn(await listening)
    },
    async leave() {
      cluster.hops.close()
      await listener.close()
    },
  }
}
