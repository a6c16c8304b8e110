import { joinCluster } from '../cluster/join.js'
import type { OwnNode } from '../cluster/own-node.js'
import type { ExecutionDispatcher } from '../executions/dispatch.js'
import type { Executions } from '../executions/executions.js'
import { answering } from '../jobs/adapter-answers.js'
import type { QueueServerOptions } from '../jobs/options.js'
import { JobQueue } from '../jobs/queue.js'
import { noteRemoval } from '../jobs/without-queue.js'
import { readInTime } from '../lib/patience.js'
import type { ProfileCatalog } from '../profiles/catalog.js'
import type { Admission } from '../sessions/admission.js'
import { SessionRegistry } from '../sessions/registry.js'
import { type Sharing, sharingOf } from '../sessions/sharing.js'
import { refusing } from '../storage/availability.js'
import { createMemoryQueueAdapter } from '../storage/memory/queue-adapter.js'
import { MemorySessionStore } from '../storage/memory/session-store.js'
import { recordJournal } from '../storage/record/session-journal.js'
import type { Deliveries } from './deliveries.js'
import type { Ground } from './ground.js'

export interface WorkParts extends Deliveries {
  profiles: ProfileCatalog
  admission: Admission
  executions: Executions
  dispatcher: ExecutionDispatcher
}

/** Sessions and jobs, and this process's place among those that have others. */
export interface Work {
  readonly cluster: OwnNode | undefined
  readonly registry: SessionRegistry
  /** Absent: without `queue` options. */
  readonly queue: JobQueue | undefined
}

export function buildWork(ground: Ground, parts: WorkParts): Work {
  const { options, clock, logger, surroundings } = ground
  const { profiles } = parts
  const cluster = joinCluster(options, {
    ...{ clock, logger, prefix: surroundings.prefix },
    profiles: () => profiles.declaredNames,
  })
  const sharing = sharingOf(options)
  const registry = buildSessions(ground, parts, sharing)
  cluster?.onResidence('session', (id) => registry.has(id) && !registry.shared?.isForAnother(id))
  cluster?.onLeft(async (id) => registry.shared?.leave(id) ?? false)
  cluster?.onTaken('sessions', ({ sessionIds }) => registry.shared?.takeUp(sessionIds))
  const queue = options.queue && buildQueue(ground, options.queue, { ...parts, registry, sharing })
  return { cluster, registry, queue }
}

function buildSessions(
  ground: Ground,
  { profiles, admission, executions, dispatcher }: WorkParts,
  sharing: Sharing | undefined,
): SessionRegistry {
  const { options, clock, storage, retryAfter, standstill } = ground
  const unattended = options.queue ? undefined : storage && refusing(storage.queue)
  return new SessionRegistry({
    ...options,
    ...{ clock, admission, executions, retryAfter, dispatcher, standstill, sharing },
    idleReleaseMs: options.idleReleaseMs,
    sessionRetentionMs: options.sessionRetentionMs,
    journal: storage?.journal ?? recordJournal(options.parking.store ?? new MemorySessionStore()),
    profilesRefreshed: () => profiles.refreshed(),
    profileInfo: (name) => profiles.get(name)?.info,
    oneWrite: storage?.oneWrite ?? false,
    atTurnsEnd: storage?.atTurnsEnd,
    keepKey: ground.keepKeyFor(storage?.journal, storage?.journal),
    onClosing: unattended && ((session) => readInTime(clock, () => noteRemoval(unattended, session))),
  })
}

function buildQueue(
  ground: Ground,
  given: QueueServerOptions,
  parts: WorkParts & { registry: SessionRegistry; sharing: Sharing | undefined },
): JobQueue {
  const { options, clock, logger, retryAfter, standstill, storage } = ground
  const { admission, profiles, deliverer, guards, registry, sharing } = parts
  const isOurs = given.adapter === undefined || given.adapter === options.storage?.queue
  const kept = isOurs ? storage?.queue : given.adapter
  return new JobQueue({
    ...given,
    ...{ clock, logger, retryAfter, standstill, admission, profiles, deliverer, guard: guards.callers },
    adapter: kept ? refusing(isOurs ? kept : answering(kept)) : createMemoryQueueAdapter({ now: () => clock.now() }),
    keepKey: ground.keepKeyFor(kept, storage?.queue),
    oneWrite: isOurs && storage?.oneWrite === true,
    sessions: registry,
    cluster: ground.isOneOfSeveral && isOurs ? refusing(options.storage!.cluster!) : undefined,
    homes: sharing?.homes,
    expiredGraceMs: options.parking.expiredGraceMs,
  })
}
