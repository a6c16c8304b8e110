import type { ClusterNode } from '../storage/cluster.js'

/** A job is under way at another node, which alone can end it. */
export class JobElsewhere extends Error {
  override readonly name = 'JobElsewhere'
  readonly node: ClusterNode
  /** Set: no node goes on with the job, and that one has its session. Once that is removed, the job can be canceled anywhere. */
  readonly sessionId: string | undefined

  constructor(id: string, node: ClusterNode, sessionId?: string) {
    super(`The job ${id}${sessionId === undefined ? ' is under way' : ' has its session'} at the node ${node.name}.`)
    this.node = node
    this.sessionId = sessionId
  }
}
