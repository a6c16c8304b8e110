import type { CarriedFiles } from '../engines/cli/carry/carried-files.js'
import type { EndedStatus } from '../sessions/kept/journal.js'

/** What a node tells the others. */
export interface NodeAnnouncement {
  /** Of the node, the same over its restarts. */
  name: string
  /** Where the other nodes reach it. */
  url: string
  /** Of what nodes say to each other. */
  protocol: number
  version: string
  /** Jobs that it runs at once; 0: it has no queue. */
  slots: number
  /** Digest of what all nodes must have alike. */
  config: string
  /**
   * Names of the profiles that it declares. As long as it lives, their sessions are left to it by nodes that do not, and their jobs if it
   * has a queue.
   */
  profiles: readonly string[]
}

/** A node that is alive, as far as the database knows. */
export interface ClusterNode extends Omit<NodeAnnouncement, 'profiles'> {
  /** Said of those that `nodes` gives. */
  profiles?: readonly string[]
  /** Of this run of it; never given again. */
  n: number
  /** It is about to leave: it takes nothing new. */
  draining: boolean
}

/** Where a session, an execution or a job is. */
export interface Place {
  /** Of the session or job. */
  id: string
  profile: string
  /** The living node that has it; absent: none. */
  owner?: ClusterNode
  /** The only node, by its name, on which an engine of it can start. Absent: any. */
  home?: string
  /** Of a session that has ended. */
  ended?: EndedStatus
}

/**
 * The other node that has a session, or that it is left to, as long as that is there: its home, or one that has its profile where this one
 * has not. Undefined: it is this one's, or may be.
 * @param self this node's number and name
 */
export function keeperOf(
  { owner, home, profile }: Place,
  self: { n: number; name: string },
  nodes: readonly ClusterNode[],
): ClusterNode | undefined {
  if (owner) return owner.n === self.n ? undefined : owner
  if (home === self.name) return undefined
  if (home !== undefined) return nodes.find(({ name, draining }) => name === home && !draining)
  return declarerOf(profile, self.n, nodes)
}

/** Another node that declares a profile which this one does not: here its sessions would fail. */
export function declarerOf(profile: string, n: number, nodes: readonly ClusterNode[]): ClusterNode | undefined {
  const having = nodes.filter(({ profiles }) => profiles?.includes(profile))
  return having.some((node) => node.n === n) ? undefined : having.find(({ draining }) => !draining)
}

/** What was a dead node's and is this one's now, by one write. */
export interface Taken {
  /** Whose it was; absent: nobody's. */
  from?: { n: number; name: string }
  /** Sessions that have not ended. */
  sessionIds: readonly string[]
  /** Jobs that are running or parked. */
  jobIds: readonly string[]
  /** Lanes of deliveries that wait. */
  lanes: readonly string[]
  /** Idempotency keys whose request was carried out and that have no answer. */
  keys: readonly string[]
}

export type ClusterEvents = {
  /** The lease was renewed: without another renewal `frozen` comes after so long. */
  beat: { leftMs: number }
  /** The lease may run out: nothing may be shown, begun or accepted until `thawed`. `reason`: why it was not renewed, for the log. */
  frozen: { reason?: Error }
  thawed: Record<string, never>
  /**
   * Declared dead: what this process had is others'. Whatever it asks for from now on is refused with `STORAGE_FENCED`. `reason`: it was
   * not declared so, but is ahead of its database, which refuses with that then.
   */
  lost: { reason?: Error }
  /** While nobody listens to it, nobody is taken over from. */
  taken: Taken
  /** From now on what nodes had that are gone cannot be taken over, which is tried again; without a `reason` it can be again. */
  untaken: { reason?: Error }
  /** Somewhere, jobs may have become claimable, or a slot free. */
  work: Record<string, never>
  /** A node came or went. */
  nodes: Record<string, never>
}

/**
 * What a storage has whose schema several processes, its nodes, share. Each session that has not ended, each job that is running or parked,
 * each delivery that waits and each idempotency key in use has one node that owns it. It stays that node's until the node is gone; then all
 * of it goes to one other by one write. Every write of a node is refused once it is gone, so that what is owned needs no proof of its own.
 *
 * A node is gone when it has left, or when it did not renew its lease in time and another one, itself long in touch with the database, has
 * said so. Where a storage has this and `announce` was not called, it is one process's as before, and others are refused.
 */
export interface ClusterStorage {
  /** Before `open`, which then joins, and takes over what nobody living owns. @param leaseMs until a node that is silent is dead */
  announce(node: NodeAnnouncement, leaseMs: number): void
  /** This run's number; 0 while it is not a member. */
  readonly n: number
  /** `out`: not joined yet, left, or declared dead. */
  readonly state: 'serving' | 'frozen' | 'out'
  /** Those that are alive, this one included; as of at most `leaseMs / 5` ago. */
  nodes(): readonly ClusterNode[]
  on<E extends keyof ClusterEvents & string>(event: E, listener: (payload: ClusterEvents[E]) => void): () => void
  /** Says that it is about to leave. */
  drain(): Promise<void>
  /** Asked of the database each time. */
  placeOfSession(id: string): Promise<Place | undefined>
  placeOfExecution(executionId: string): Promise<Place | undefined>
  /** `owner` is absent while it is queued or over. */
  placeOfJob(id: string): Promise<Place | undefined>
  /** Makes a session this node's if no living node owns it. @returns where it is then; `undefined`: it is not there */
  claim(id: string): Promise<Place | undefined>
  /** After its last write: nobody owns it from then on. */
  release(ids: readonly string[]): Promise<void>
  /** Files of agents whose sessions go on at any node. */
  readonly carried: CarriedFiles
  /** Tells the other nodes that there may be work, at most once in a few milliseconds; may be lost. */
  nudge(): void
}
