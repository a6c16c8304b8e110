import type { ClusterNode, ClusterStorage, Taken } from '../storage/cluster.js'

/** What a request is about. */
export type Target = { session: string } | { execution: string } | { job: string }

/** Kinds of what a node owns, in the order in which a taker takes them up. */
export const TAKEN_KINDS = ['lanes', 'sessions', 'jobs', 'reminders', 'keys'] as const
export type TakenKind = (typeof TAKEN_KINDS)[number]

/** What is done with what was taken; skips what is here already. */
export type TakeUp = (taken: Taken) => void | Promise<void>

/** What is asked of another node on somebody's behalf. */
export interface NodeRequest {
  method: string
  /** With `basePath` and query. */
  path: string
  /** Of who asks: the other node lets them in by these, as it lets in everybody. */
  headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Who asks, as `CLIENT_HEADER` says it. Absent: this node, in its own name. */
  client?: string
  body?: string | Uint8Array
  signal?: AbortSignal
  /** Its answer goes on for as long as both are there: only its head has to come in time. Default: all of it has to. */
  isStream?: boolean
}

/** This process as one node of several. */
export interface Cluster {
  readonly self: { readonly n: number; readonly name: string; readonly url: string }
  readonly state: ClusterStorage['state']
  /** Other nodes that are alive. */
  others(): ClusterNode[]
  /**
   * Where something is done: here, or at the node that owns it. What nobody owns is claimed and taken up first, so that it is here. It is
   * here, too, when there is no such thing. Asks the database only for what is not here and was not asked for lately.
   */
  where(target: Target): Promise<'here' | ClusterNode>
  /** What was remembered of where it is was wrong. */
  forget(target: Target): void
  /** Whether it is in this process, so that nothing has to be asked. */
  isResident(target: Target): boolean
  /** Asks another node. @throws NodeUnreachable */
  ask(node: ClusterNode, request: NodeRequest): Promise<Response>
  /**
   * Registers what is done with what was a dead node's, and with a session that was claimed because somebody asked for it (`sessionIds` has
   * it alone then). Called for one taking after the other, in the order of `TAKEN_KINDS`, and only once the gateway has started.
   * @param expect told of it as soon as that is known, while others may still be taken up
   */
  onTaken(kind: TakenKind, takeUp: TakeUp, expect?: (taken: Taken) => void): void
  /** Registers how to tell what is in this process, by the kind of target. */
  onResidence(kind: 'session' | 'execution' | 'job', isHere: (id: string) => boolean): void
}

/** Another node did not answer. */
export class NodeUnreachable extends Error {
  override readonly name = 'NodeUnreachable'
  readonly node: ClusterNode
  /** Whether it cannot have begun with what it was asked for. */
  readonly unsent: boolean

  constructor(node: ClusterNode, unsent: boolean, cause: unknown) {
    super(`The node ${node.name} cannot be reached at ${node.url}, its cluster.url.`, { cause })
    this.node = node
    this.unsent = unsent
  }
}

/** Whether nothing of what was asked for can have been done; else nobody knows. */
export const wasUnheard = (error: unknown): boolean => error instanceof NodeUnreachable && error.unsent
