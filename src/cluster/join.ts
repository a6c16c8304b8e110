import { createHash } from 'node:crypto'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { ResolvedOptions } from '../options.js'
import { HopClient } from './hop-client.js'
import { OwnNode } from './own-node.js'

/** This process's place among others; undefined where it is alone. */
export function joinCluster(
  options: ResolvedOptions,
  {
    clock,
    logger,
    profiles,
    prefix = '',
  }: {
    clock: Clock
    logger: Logger
    /** Names of those that there are from the start on. */
    profiles: () => readonly string[]
    prefix?: string | undefined
  },
): OwnNode | undefined {
  const { cluster, storage } = options
  if (!cluster || !storage?.cluster) return undefined
  const { cluster: shared } = storage
  const [secret, otherSecret] = cluster.secrets
  const hops = new HopClient({ secret: secret!, otherSecret, clock, from: () => shared.n, tls: cluster.tls })
  return new OwnNode({
    ...{ options: cluster, storage: shared, hops, clock, logger },
    slots: options.queue ? (options.queue.maxConcurrency ?? 1) : 0,
    digest: digestOf(options, prefix),
    profiles,
  })
}

/** Of what callers would notice when it is not the same at every node, and of where a node sends what another one was to. */
function digestOf({ cluster, ...options }: ResolvedOptions, prefix: string): string {
  const { profiles, executions, basePath, maxBodyBytes, requireApiKey, disableBypassPermissions, notifications } =
    options
  const { webhook, channels = [] } = notifications ?? {}
  const told = [...channels.map(({ name, format }) => name ?? format), ...(webhook ? ['webhook'] : [])].sort()
  const shared = {
    ...{ path: `${prefix}${basePath}`, profiles, maxBodyBytes, requireApiKey, disableBypassPermissions },
    ...{ tools: executions?.tools, agentState: cluster?.agentState },
    ...(told.length > 0 && { told }),
  }
  return createHash('sha256').update(JSON.stringify(shared)).digest('hex').slice(0, 16)
}
