import { CLOSE } from '../schemas/close-codes.js'
import { Standing } from './cluster/standing.js'
import { leash } from './engines/cli/index.js'
import { Executions } from './executions/executions.js'
import { buildAdmission, buildCliProfiles, buildProfiles } from './gateway/admission.js'
import { buildSignIns } from './gateway/console.js'
import { buildDeliveries, buildDispatcher, callersEgress } from './gateway/deliveries.js'
import { type Ground, layGround } from './gateway/ground.js'
import { GatewayLife } from './gateway/life.js'
import { lookups } from './gateway/lookups.js'
import { buildNotifications } from './gateway/notifications.js'
import type { Gateway, Surroundings } from './gateway/shape.js'
import { goOnWithOthers } from './gateway/take-over.js'
import { buildWork } from './gateway/work.js'
import type { WorkerServerOptions } from './options.js'
import type { SessionRegistry } from './sessions/registry.js'
import { refusing } from './storage/availability.js'
import { createMemoryChannelStore } from './storage/memory/channel-store.js'
import { createMemoryUsageStore } from './storage/memory/usage-store.js'
import { Usage } from './usage/usage.js'

export type { Gateway, Surroundings } from './gateway/shape.js'

/** Characters of an id in a path, where whoever serves it does not say otherwise. */
export const MAX_ID_LENGTH = 512

/**
 * Builds the domain objects and wires them.
 * @throws GatewayError on every startup failure that can be seen now
 */
export function createGateway(given: WorkerServerOptions, surroundings: Surroundings = {}): Gateway {
  const ground = layGround(given, surroundings)
  const { options, clock, outerClock, logger, storage, watch, retryAfter, idempotency } = ground
  const profiles = buildProfiles(ground, callersEgress(ground))
  const { admission, toolEndpoint } = buildAdmission(ground, profiles)
  const executions = new Executions({ clock, logger, maxIdLength: surroundings.maxIdLength ?? MAX_ID_LENGTH })
  const usage = new Usage({
    ...{ clock, logger, retryAfter },
    store: refusing(storage?.usage ?? createMemoryUsageStore()),
    ridesAlong: storage?.usage !== undefined && storage.oneWrite === true,
  })
  const deliveries = buildDeliveries(ground)
  const { deliverer, guards } = deliveries
  const dispatcher = buildDispatcher(ground, deliveries, executions)
  const work = buildWork(ground, { ...deliveries, profiles, admission, executions, dispatcher })
  const { cluster, registry, queue } = work
  const cliProfiles = buildCliProfiles(ground, profiles, registry)
  const channels = refusing(storage?.channels ?? createMemoryChannelStore())
  const told = buildNotifications(ground, { ...deliveries, channels, cluster, registry })
  const { nodes, feed, inbox, notifier, outward, notifications } = told
  registry.observe({ notifier, inbox, usage, onTurnOver: queue?.onTurnOver, onCallCounted: queue?.onCallCounted })
  const signIns = buildSignIns(ground, { channels, nodes, outward })
  const endStep = nodes?.keepInStep({ feed, inbox, signIns, subscriptions: outward.push?.subscriptions })
  const standing = buildStanding(ground, registry)
  const found = lookups({
    ...{ storage, registry, queue, profiles, outward, dispatcher, deliverer, logger },
    isOneOfSeveral: ground.isOneOfSeveral,
  })
  const { findMade } = found
  if (cluster) goOnWithOthers(cluster, { queue, deliverer, outward, idempotency, findMade, logger, retryAfter })
  const life = new GatewayLife({
    ...{ options, clock, storage, cluster, standing, profiles, registry, executions, queue, cliProfiles, toolEndpoint },
    ...{ feed, outward, signIns, deliverer, idempotency, lookups: found, endStep },
    guards: Object.values(guards),
    endsOrphans: surroundings.createCliRunner === undefined,
  })
  return {
    ...{ options, clock: outerClock, standing, registry, profiles, executions, queue, notifications, cliProfiles },
    ...{ deliverer, webhooks: found.targets, idempotency, usage, signIns, cluster },
    get ready() {
      return life.isReady && this.writable
    },
    get writable() {
      return (watch?.available ?? true) && registry.isWritable && !standing?.stands
    },
    get startedAt() {
      return life.startedAt
    },
    get draining() {
      return life.isDraining
    },
    start: () => life.start(),
    close: (answered) => life.close(answered),
  }
}

/** What this node does when it may not go on, or not for now; undefined where no other goes on in its place. */
function buildStanding(ground: Ground, registry: SessionRegistry): Standing | undefined {
  const { options, outerClock: clock, logger, standstill, surroundings } = ground
  return (
    standstill &&
    new Standing({
      ...{ cluster: options.storage!.cluster!, leaseMs: options.cluster!.leaseMs },
      ...{ standstill, clock, logger, onLost: surroundings.onLost },
      engines: {
        pause: () => registry.engines.pause(),
        resume: () => registry.engines.resume(),
        abandon: () => {
          registry.drain(CLOSE.sessionMoved)
          return registry.engines.abandon()
        },
      },
      leaseAgents: (leftMs) => void (surroundings.createCliRunner ? undefined : leash.lease(leftMs)),
    })
  )
}
