import type { ClusterNode } from '../storage/cluster.js'

/** A job is under way at another node, which alone can end it. */
export class JobElsewhere extends Error {
  override readonly name = 'JobElsewhere'
  readonly node: ClusterNode

  constructor(id: string, node: ClusterNode) {
    super(`The job ${id} is under way at the node ${node.name}.`)
    this.node = node
  }
}
