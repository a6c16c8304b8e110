import { GatewayError } from '../errors.js'
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

/**
 * After the write of an execution: of an id that two sessions write at once, the database gives it to the first.
 * @throws SG_ERR_EXECUTION_EXISTS when it is another session's; what the storage throws
 */
export async function assertOwnExecution(sharing: Sharing | undefined, id: string, executionId: string): Promise<void> {
  const place = await sharing?.storage.placeOfExecution(executionId)
  if (place && place.id !== id) throw new GatewayError('SG_ERR_EXECUTION_EXISTS')
}
