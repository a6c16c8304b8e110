import { homedir } from 'node:os'
import { CLOSE } from '../schemas/close-codes.js'
import type { ProfileInfo } from '../schemas/profiles.js'
import { joinCluster } from './cluster/join.js'
import { Standing } from './cluster/standing.js'
import { SignIns } from './console/sign-ins.js'
import { assertSuits, cliEngine, leash } from './engines/cli/index.js'
import { withHostedTools } from './engines/hosted-tools.js'
import { isBundledEngine } from './engines/provider/index.js'
import type { CreateEngineRunner, SessionRunnerConfig } from './engines/runner.js'
import { ToolEndpoint } from './engines/tool-endpoint.js'
import { ExecutionDispatcher } from './executions/dispatch.js'
import { Executions } from './executions/executions.js'
import { GatewayLife } from './gateway/life.js'
import { lookups } from './gateway/lookups.js'
import { buildNotifications } from './gateway/notifications.js'
import type { Gateway, Surroundings } from './gateway/shape.js'
import { goOnWithOthers } from './gateway/take-over.js'
import { settling } from './idempotency/making.js'
import type { KeptKey } from './idempotency/store.js'
import { answering } from './jobs/adapter-answers.js'
import type { QueueServerOptions } from './jobs/options.js'
import { JobQueue } from './jobs/queue.js'
import { isPruned } from './jobs/retention.js'
import { noteRemoval } from './jobs/without-queue.js'
import { type Clock, systemClock } from './lib/clock.js'
import { readInTime } from './lib/patience.js'
import { Standstill } from './lib/standstill.js'
import { type ResolvedOptions, resolveOptions, type WorkerServerOptions } from './options.js'
import { ProfileCatalog } from './profiles/catalog.js'
import { CliProfiles } from './profiles/cli-profiles.js'
import { Admission } from './sessions/admission.js'
import { SessionRegistry } from './sessions/registry.js'
import { sharingOf } from './sessions/sharing.js'
import { refusing, StorageWatch } from './storage/availability.js'
import { createMemoryChannelStore } from './storage/memory/channel-store.js'
import { createMemoryDeliveryOutbox } from './storage/memory/delivery-outbox.js'
import { createMemoryIdempotencyStore } from './storage/memory/idempotency-store.js'
import { createMemoryQueueAdapter } from './storage/memory/queue-adapter.js'
import { MemorySessionStore } from './storage/memory/session-store.js'
import { createMemorySignInStore } from './storage/memory/sign-in-store.js'
import { createMemoryUsageStore } from './storage/memory/usage-store.js'
import { recordJournal } from './storage/record/session-journal.js'
import { Usage } from './usage/usage.js'
import { WebhookDeliverer } from './webhooks/deliverer.js'
import { EgressGuard } from './webhooks/egress.js'

export type { Gateway, Surroundings } from './gateway/shape.js'

/** Characters of an id in a path, where whoever serves it does not say otherwise. */
export const MAX_ID_LENGTH = 512

/**
 * Builds the domain objects and wires them.
 * @throws GatewayError on every startup failure that can be seen now
 */
export function createGateway(given: WorkerServerOptions, surroundings: Surroundings = {}): Gateway {
  const options = resolveOptions(given)
  const { clock: outerClock = systemClock, env = process.env } = surroundings
  const standstill = options.cluster && new Standstill(outerClock)
  const clock = standstill?.clock ?? outerClock
  const { logger } = options
  const watch = options.storage && new StorageWatch(options.storage, { clock: outerClock, logger })
  const storage = watch?.storage
  const cluster = joinCluster(options, {
    ...{ clock, logger, prefix: surroundings.prefix },
    profiles: () => profiles.declaredNames,
  })
  const wait: Clock['after'] = watch?.retryAfter ?? ((delayMs, run) => clock.after(delayMs, run))
  const retryAfter = standstill?.through(wait) ?? wait
  const profileStore =
    options.storage && options.profileStore === options.storage.profiles ? storage?.profiles : options.profileStore
  const secretEnv = [
    ...(surroundings.secretEnv ?? []),
    // what is no profile is refused below
    ...(options.profiles ?? []).flatMap((profile) => profile?.provider?.apiKeyEnv ?? []),
    ...(options.managedProfiles?.apiKeyEnvs ?? []),
    ...(options.managedProfiles?.endpoints ?? []).flatMap(({ apiKeyEnv }) => apiKeyEnv ?? []),
  ]
  const { allowPrivateNetworks = true, allowedHosts } = options.webhookPolicy ?? {}
  const egress = { allowPrivateNetworks, allowedHosts }
  const idempotency = storage?.idempotency
    ? settling(refusing(storage.idempotency), { logger, retryAfter })
    : createMemoryIdempotencyStore({ now: () => clock.now() })
  /** A part of the storage keeps a request's key in the write that makes what was asked for; for others it is kept right before. */
  const keepKeyFor = (part: object | undefined, ours: object | undefined) =>
    storage && (part !== ours || !storage.oneWrite) && idempotency.keep
      ? (key: KeptKey) => idempotency.keep!(key)
      : undefined
  const profiles = new ProfileCatalog({
    declared: options.profiles,
    ...(profileStore && { store: refusing(profileStore) }),
    shared: cluster !== undefined,
    ...(options.allowedConfigDirRoots && { allowedConfigDirRoots: options.allowedConfigDirRoots }),
    ...(options.allowedCwdRoots && { allowedCwdRoots: options.allowedCwdRoots }),
    agents: options.agents,
    managedProfiles: options.managedProfiles,
    egress,
    allowConfigDirOverlap: options.allowConfigDirOverlap ?? false,
    hasEngineRunner: options.createEngineRunner !== undefined,
    isHostsEngine: options.createEngineRunner !== undefined && !isBundledEngine(options.createEngineRunner),
    disableBypassPermissions: options.disableBypassPermissions,
    servesTools: (options.executions?.tools ?? []).length > 0,
    ...{ env, logger, clock, retryAfter },
    notices: options.notices,
    keepKey: keepKeyFor(profileStore, storage?.profiles),
  })
  const toolEndpoint = new ToolEndpoint(logger)
  const admission = new Admission({
    clock,
    profiles,
    roots: options.cwdRoots,
    disableBypassPermissions: options.disableBypassPermissions,
    buildRunnerConfig: options.buildRunnerConfig,
    deferredTools: options.executions?.tools.map(({ dispatch: _told, ...tool }) => tool) ?? [],
    engines: {
      cli: withHostedTools(surroundings.createCliRunner ?? bundledCli(options, env, secretEnv), toolEndpoint, clock),
      provider: options.createEngineRunner,
    },
    assertSuitsAgent: surroundings.createCliRunner ? undefined : suitsAgent(options, env, secretEnv),
    standstill,
  })
  const executions = new Executions({
    clock,
    logger,
    maxIdLength: surroundings.maxIdLength ?? MAX_ID_LENGTH,
  })
  const usage = new Usage({
    ...{ clock, logger, retryAfter },
    store: refusing(storage?.usage ?? createMemoryUsageStore()),
    ridesAlong: storage?.usage !== undefined && storage.oneWrite === true,
  })
  const outbox = storage?.outbox ?? createMemoryDeliveryOutbox()
  const deliverer = new WebhookDeliverer({
    ...{ clock, logger, outbox, outlasts: storage !== undefined, retryAfter },
    connections: options.webhookPolicy?.maxConnections,
    standstill,
    isForgotten: cluster && options.queue?.retention && isPruned(options.queue.adapter ?? storage!.queue),
  })
  const guard = new EgressGuard(egress)
  // a browser's endpoint is nobody's private address, unless the operator says so
  const pushGuard = new EgressGuard({ ...egress, allowPrivateNetworks: options.webhookPolicy?.allowPrivateNetworks })
  // where the operator's own deliveries go is the operator's decision
  const operatorGuard = new EgressGuard({ allowPrivateNetworks: true })

  const basePath = `${surroundings.prefix ?? ''}${options.basePath}`
  const dispatching = { basePath, deliverer, executions, guard: operatorGuard, logger }
  const dispatcher = new ExecutionDispatcher({ ...options.executions, ...dispatching })

  const sharing = sharingOf(options)
  const unattended = options.queue ? undefined : storage && refusing(storage.queue)
  const registry = new SessionRegistry({
    ...options,
    clock,
    admission,
    executions,
    journal: storage?.journal ?? recordJournal(options.parking.store ?? new MemorySessionStore()),
    retryAfter,
    idleReleaseMs: options.idleReleaseMs,
    profilesRefreshed: () => profiles.refreshed(),
    profileInfo: (name) => profiles.get(name)?.info,
    oneWrite: storage?.oneWrite ?? false,
    atTurnsEnd: storage?.atTurnsEnd,
    keepKey: keepKeyFor(storage?.journal, storage?.journal),
    ...{ dispatcher, standstill },
    sessionRetentionMs: options.sessionRetentionMs,
    onClosing: unattended && ((session) => readInTime(clock, () => noteRemoval(unattended, session))),
    sharing,
  })

  cluster?.onResidence('session', (id) => registry.has(id) && !registry.shared?.isForAnother(id))
  cluster?.onLeft(async (id) => registry.shared?.leave(id) ?? false)
  cluster?.onTaken('sessions', ({ sessionIds }) => registry.shared?.takeUp(sessionIds))

  const cliProfiles = new CliProfiles({
    ...{ profiles, env, secretEnv, logger, notices: options.notices, buildRunnerConfig: options.buildRunnerConfig },
    agents: options.agents,
    roots: options.cwdRoots,
    checkIn: options.allowedCwdRoots?.[0] ?? homedir(),
    checkCredentials: options.checkCredentials,
    listSdkSessions: options.listSdkSessions,
    isContinued: (sdkSessionId) => registry.isContinued(sdkSessionId),
  })

  const createQueue = (given: QueueServerOptions) => {
    const isOurs = given.adapter === undefined || given.adapter === options.storage?.queue
    const kept = isOurs ? storage?.queue : given.adapter
    return new JobQueue({
      ...given,
      adapter: kept ? refusing(isOurs ? kept : answering(kept)) : createMemoryQueueAdapter({ now: () => clock.now() }),
      keepKey: keepKeyFor(kept, storage?.queue),
      oneWrite: isOurs && storage?.oneWrite === true,
      ...{ clock, logger, retryAfter, standstill, admission, profiles, deliverer, guard },
      sessions: registry,
      cluster: cluster && isOurs ? refusing(options.storage!.cluster!) : undefined,
      homes: sharing?.homes,
      expiredGraceMs: options.parking.expiredGraceMs,
    })
  }
  const queue = options.queue && createQueue(options.queue)

  const channels = refusing(storage?.channels ?? createMemoryChannelStore())
  const { nodes, feed, inbox, notifier, outward, notifications } = buildNotifications({
    ...{ options, clock, retryAfter, storage, channels, cluster, registry, deliverer, outbox, basePath },
    ...{ operatorGuard, pushGuard, callerNamed: surroundings.callerNamed },
  })
  registry.observe({ notifier, inbox, usage, onTurnOver: queue?.onTurnOver, onCallCounted: queue?.onCallCounted })

  const signIns =
    options.console && options.authenticate
      ? new SignIns({
          ...{ ...options.console, clock, logger, retryAfter },
          store: refusing(storage?.signIns ?? createMemorySignInStore()),
          ...{ shared: nodes !== undefined, tellOthers: nodes && (() => nodes.exchange.tell('signIns')) },
          keyOnce: (name, value) => channels.keyOnce(name, value),
          endWhatWasMadeIn: (id) => outward.push?.subscriptions.endSignIn(id) ?? Promise.resolve(),
          hasMade: (id) => outward.push?.subscriptions.isAnyOf(id) === true,
        })
      : undefined

  const endStep = nodes?.keepInStep({ feed, inbox, signIns, subscriptions: outward.push?.subscriptions })
  const standing =
    standstill &&
    new Standing({
      ...{ cluster: options.storage!.cluster!, leaseMs: options.cluster!.leaseMs },
      ...{ standstill, clock: outerClock, logger, onLost: surroundings.onLost },
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

  const found = lookups({
    ...{ storage, registry, queue, profiles, outward, dispatcher, deliverer, logger },
    isOneOfSeveral: cluster !== undefined,
  })
  if (cluster) {
    const { findMade } = found
    goOnWithOthers(cluster, { queue, deliverer, outward, idempotency, findMade, logger, retryAfter })
  }

  const life = new GatewayLife({
    ...{ options, clock, storage, cluster, standing, profiles, registry, executions, queue, cliProfiles, toolEndpoint },
    ...{ feed, outward, signIns, deliverer, idempotency, lookups: found, endStep },
    guards: [guard, operatorGuard, pushGuard],
    endsOrphans: surroundings.createCliRunner === undefined,
  })
  return {
    options,
    clock: outerClock,
    standing,
    registry,
    profiles,
    executions,
    queue,
    notifications,
    cliProfiles,
    deliverer,
    webhooks: found.targets,
    idempotency,
    usage,
    signIns,
    cluster,
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
    close: () => life.close(),
  }
}

const bundledCli = (
  { agents, cwdRoots: roots, logger, cluster, storage }: ResolvedOptions,
  env: NodeJS.ProcessEnv,
  secretEnv: readonly string[],
): CreateEngineRunner => {
  const carried = cluster?.agentState === 'copied' ? refusing(storage!.cluster!.carried) : undefined
  return cliEngine({ ...(agents && { agents }), ...(roots && { roots }), env, secretEnv, logger, carried })
}

const suitsAgent =
  ({ agents, executions }: ResolvedOptions, env: NodeJS.ProcessEnv, secretEnv: readonly string[]) =>
  (profile: ProfileInfo, request: SessionRunnerConfig): void =>
    assertSuits({ ...(agents && { agents }), env, secretEnv }, profile, request, executions?.tools ?? [])
