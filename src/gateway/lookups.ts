import type { JobEvent } from '../../schemas/jobs.js'
import type { ExecutionDispatcher } from '../executions/dispatch.js'
import type { Made } from '../idempotency/store.js'
import { shown } from '../jobs/patch.js'
import type { JobQueue } from '../jobs/queue.js'
import type { Logger } from '../lib/logger.js'
import type { Outward } from '../notifications/outward.js'
import type { ProfileCatalog } from '../profiles/catalog.js'
import type { SessionRegistry } from '../sessions/registry.js'
import type { GatewayStorage } from '../storage/storage.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { FindTarget } from '../webhooks/delivery.js'
import type { WebhookTarget } from '../webhooks/target.js'

export interface LookupParts {
  storage: GatewayStorage | undefined
  isOneOfSeveral: boolean
  registry: SessionRegistry
  queue: JobQueue | undefined
  profiles: ProfileCatalog
  outward: Outward
  dispatcher: ExecutionDispatcher
  deliverer: WebhookDeliverer
  logger: Logger
}

/** What is kept under a name alone, found again among the parts that have it by now. */
export interface Lookups {
  /** Where a delivery of an earlier process goes. */
  findTarget: FindTarget
  /** What a request with an idempotency key has made. @throws of one that cannot be read */
  findMade(made: Made): object | undefined | Promise<object | undefined>
  /** Where the operator's own deliveries go. */
  targets(): WebhookTarget[]
  /** Tells the operator of those that are over. */
  tellOfGone(): void
}

export function lookups(parts: LookupParts): Lookups {
  const { storage, isOneOfSeveral, registry, queue, profiles, outward, dispatcher, deliverer, logger } = parts

  /** As the queue shows it, also where there is none: the next process, or another node, may have one. */
  const findJob = async (id: string) => {
    const kept = await storage?.queue.get(id)
    if (queue) return queue.get(id)
    return kept ? shown(kept.info) : undefined
  }
  const targets = () => [...outward.targets(), ...dispatcher.targets()]

  return {
    targets,
    async findTarget({ origin, payload }) {
      switch (origin.kind) {
        case 'job':
          // jobs wait for a queue; among nodes those that have one go on with the job, and would wait for this one
          return queue ? queue.targetOf(payload as JobEvent, origin) : isOneOfSeveral ? undefined : 'later'
        case 'notification':
        case 'channel':
          return outward.targetOf(origin)
        case 'dispatch':
          return dispatcher.targetOf(origin.tool)
        case 'reminder':
          return undefined
      }
    },
    findMade({ kind, id }) {
      switch (kind) {
        case 'session':
          return registry.get(id)
        case 'job':
          return findJob(id)
        case 'profile':
          // another node may have made it
          return Promise.resolve(profiles.refreshed()).then(() => profiles.get(id)?.info)
        case 'answer':
          // kept in the write that the answer is in
          return { resolved: true }
      }
    },
    tellOfGone() {
      for (const target of targets())
        if (deliverer.isGone(target))
          logger.warn(
            { target: target.name },
            'this webhook answered 410 Gone: nothing is sent to it any more. Change its URL to begin again',
          )
    },
  }
}
