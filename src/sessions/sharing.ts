import type { ResolvedOptions } from '../options.js'
import type { ClusterStorage } from '../storage/cluster.js'

/** What is to be known where several processes, its nodes, share one journal. */
export interface Sharing {
  readonly storage: Pick<
    ClusterStorage,
    'n' | 'nodes' | 'on' | 'placeOfSession' | 'placeOfExecution' | 'claim' | 'release'
  >
  /** Name of this node. */
  readonly node: string
  /** What command-line agents keep of a session is on the disk of the node on which it began. */
  readonly agentsStay: boolean
}

/** Undefined where one process has all sessions. */
export const sharingOf = ({ cluster, storage }: ResolvedOptions): Sharing | undefined =>
  cluster &&
  storage?.cluster && { storage: storage.cluster, node: cluster.node, agentsStay: cluster.agentState === 'node' }
