import type { ProfileInfo } from '../../schemas/profiles.js'
import { canCarry } from '../engines/cli/index.js'
import type { ResolvedOptions } from '../options.js'
import { refusing } from '../storage/availability.js'
import type { ClusterStorage } from '../storage/cluster.js'

/** What is to be known where several processes, its nodes, share one journal. */
export interface Sharing {
  readonly storage: Pick<
    ClusterStorage,
    'n' | 'nodes' | 'on' | 'placeOfSession' | 'placeOfExecution' | 'claim' | 'release'
  >
  /** Name of this node. */
  readonly node: string
  /** Absent: what command-line agents keep is the same at every node. */
  readonly homes?: Homes
}

/** Where what command-line agents keep is on the disk of each node. */
export interface Homes {
  /** Name of this node. */
  readonly node: string
  /** The only node on which sessions of a profile that begin here go on; undefined: they go on at any. */
  of(profile: ProfileInfo): string | undefined
}

/** Undefined where one process has all sessions. */
export function sharingOf({ cluster, storage, agents }: ResolvedOptions): Sharing | undefined {
  if (!cluster || !storage?.cluster) return undefined
  const { node, agentState } = cluster
  const shared = { storage: refusing(storage.cluster), node }
  if (agentState === 'shared') return shared
  const goesAnywhere = (profile: ProfileInfo) =>
    profile.engine !== 'cli' || (agentState === 'copied' && canCarry(agents, profile))
  return { ...shared, homes: { node, of: (profile) => (goesAnywhere(profile) ? undefined : node) } }
}
