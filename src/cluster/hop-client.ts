import type { ClusterNode } from '../storage/cluster.js'
import type { NodeRequest } from './cluster.js'

/** Speaks to other nodes. */
export class HopClient {
  /** Lets go of those that are not there any more. */
  keep(_nodes: readonly ClusterNode[]): void {}

  async ask(_node: ClusterNode, _request: NodeRequest): Promise<Response> {
    throw new Error('not yet')
  }
}
