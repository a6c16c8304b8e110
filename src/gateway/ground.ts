import { settling } from '../idempotency/making.js'
import type { IdempotencyStore, KeptKey } from '../idempotency/store.js'
import { type Clock, systemClock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { Standstill } from '../lib/standstill.js'
import { type ResolvedOptions, resolveOptions, type WorkerServerOptions } from '../options.js'
import { refusing, StorageWatch } from '../storage/availability.js'
import { createMemoryIdempotencyStore } from '../storage/memory/idempotency-store.js'
import type { GatewayStorage } from '../storage/storage.js'
import type { Surroundings } from './shape.js'

/** What every part of a gateway stands on. */
export interface Ground {
  readonly options: ResolvedOptions
  readonly surroundings: Surroundings
  readonly logger: Logger
  readonly env: NodeJS.ProcessEnv
  /** Names of variables that no agent gets. */
  readonly secretEnv: readonly string[]
  /** What stands before the path of every route. */
  readonly basePath: string
  /** It stands while this node may not go on. */
  readonly clock: Clock
  /** The one that never stands. */
  readonly outerClock: Clock
  /** Absent: no other node takes over what this one has. */
  readonly standstill: Standstill | undefined
  readonly isOneOfSeveral: boolean
  /** Absent: everything is kept in memory. */
  readonly storage: GatewayStorage | undefined
  /** Whether `storage` takes what it is given. */
  readonly watch: StorageWatch | undefined
  /** Tries again after that many milliseconds, or once `storage` takes something again. */
  readonly retryAfter: Clock['after']
  readonly idempotency: IdempotencyStore
  /**
   * A part of the storage keeps a request's key in the write that makes what was asked for; for others it is kept right before.
   * @param part what keeps it
   * @param ours the same part of `storage`
   * @returns undefined where the part keeps the key
   */
  keepKeyFor(part: object | undefined, ours: object | undefined): ((key: KeptKey) => Promise<void>) | undefined
}

/** @throws SG_ERR_OPTION of an option that is wrong by itself */
export function layGround(given: WorkerServerOptions, surroundings: Surroundings): Ground {
  const options = resolveOptions(given)
  const { logger } = options
  const { clock: outerClock = systemClock, env = process.env } = surroundings
  const standstill = options.cluster && new Standstill(outerClock)
  const clock = standstill?.clock ?? outerClock
  const watch = options.storage && new StorageWatch(options.storage, { clock: outerClock, logger })
  const storage = watch?.storage
  const wait: Clock['after'] = watch?.retryAfter ?? ((delayMs, run) => clock.after(delayMs, run))
  const retryAfter = standstill?.through(wait) ?? wait
  const idempotency = storage?.idempotency
    ? settling(refusing(storage.idempotency), { logger, retryAfter })
    : createMemoryIdempotencyStore({ now: () => clock.now() })
  return {
    ...{ options, surroundings, logger, env, clock, outerClock, standstill, storage, watch, retryAfter, idempotency },
    secretEnv: [...(surroundings.secretEnv ?? []), ...keyVariables(options)],
    basePath: `${surroundings.prefix ?? ''}${options.basePath}`,
    isOneOfSeveral: options.cluster !== undefined && options.storage?.cluster !== undefined,
    keepKeyFor: (part, ours) =>
      storage && (part !== ours || !storage.oneWrite) && idempotency.keep ? (key) => idempotency.keep!(key) : undefined,
  }
}

/** Names of variables that hold the keys of providers. */
const keyVariables = ({ profiles, managedProfiles }: ResolvedOptions): string[] => [
  // what is no profile is refused by the catalogue
  ...(profiles ?? []).flatMap((profile) => profile?.provider?.apiKeyEnv ?? []),
  ...(managedProfiles?.apiKeyEnvs ?? []),
  ...(managedProfiles?.endpoints ?? []).flatMap(({ apiKeyEnv }) => apiKeyEnv ?? []),
]
