import { homedir } from 'node:os'
import { CLOSE } from '../schemas/close-codes.js'
import type { JobEvent } from '../schemas/jobs.js'
import type { ProfileInfo } from '../schemas/profiles.js'
import { joinCluster } from './cluster/join.js'
import { Standing } from './cluster/standing.js'
import { SignIns } from './console/sign-ins.js'
import { assertSuits, cliEngine, endOrphans, leash } from './engines/cli/index.js'
import { withHostedTools } from './engines/hosted-tools.js'
import type { CreateEngineRunner, SessionRunnerConfig } from './engines/runner.js'
import { ToolEndpoint } from './engines/tool-endpoint.js'
import { GatewayError, toError } from './errors.js'
import { ExecutionDispatcher } from './executions/dispatch.js'
import { Executions } from './executions/executions.js'
import { buildNotifications } from './gateway-notifications.js'
import type { Gateway, Surroundings } from './gateway-shape.js'
import { goOnWithOthers } from './gateway-take-over.js'
import { answerLeft, settling } from './idempotency/making.js'
import type { KeptKey, Made } from './idempotency/store.js'
import { answering, unstarted } from './jobs/adapter-answers.js'
import type { QueueServerOptions } from './jobs/options.js'
import { shown } from './jobs/patch.js'
import { JobQueue } from './jobs/queue.js'
import { type Clock, systemClock } from './lib/clock.js'
import { Standstill } from './lib/standstill.js'
import { within } from './lib/within.js'
import { type ResolvedOptions, resolveOptions, type WorkerServerOptions } from './options.js'
import { ProfileCatalog } from './profiles/catalog.js'
import { CliProfiles } from './profiles/cli-profiles.js'
import { Admission } from './sessions/admission.js'
import { tellOnError } from './sessions/kept/keeping.js'
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
import { moveParked, recordJournal } from './storage/record/session-journal.js'
import { Usage } from './usage/usage.js'
import { WebhookDeliverer } from './webhooks/deliverer.js'
import type { FindTarget } from './webhooks/delivery.js'
import { EgressGuard } from './webhooks/egress.js'

export type { Gateway, Surroundings } from './gateway-shape.js'

/** A store has at least that long to be closed. */
const STORAGE_CLOSE_MS = 1_000
/** Characters of an id in a path, where whoever serves it does not say otherwise. */
export const MAX_ID_LENGTH = 512
/** A start that takes longer than this is told of. */
const SLOW_START_MS = 10_000

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
    disableBypassPermissions: options.disableBypassPermissions,
    servesTools: (options.executions?.tools ?? []).length > 0,
    env,
    logger,
    notices: options.notices,
    clock,
    retryAfter,
    keepKey: keepKeyFor(profileStore, storage?.profiles),
  })
  const toolEndpoint = new ToolEndpoint(logger)
  const admission = new Admission({
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
  })
  const guard = new EgressGuard(egress)
  // a browser's endpoint is nobody's private address, unless the operator says so
  const pushGuard = new EgressGuard({ ...egress, allowPrivateNetworks: options.webhookPolicy?.allowPrivateNetworks })
  // where the operator's own deliveries go is the operator's decision
  const operatorGuard = new EgressGuard({ allowPrivateNetworks: true })

  const { tools = [], onDispatch } = options.executions ?? {}
  const basePath = `${surroundings.prefix ?? ''}${options.basePath}`
  const dispatcher = new ExecutionDispatcher({ tools, onDispatch, basePath, deliverer, guard: operatorGuard, logger })

  const sharing = sharingOf(options)
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

  const channels = storage?.channels ?? createMemoryChannelStore()
  const { nodes, feed, inbox, notifier, outward, notifications } = buildNotifications({
    ...{ options, clock, retryAfter, storage, channels, cluster, registry, deliverer, outbox, basePath },
    ...{ operatorGuard, pushGuard, callerNamed: surroundings.callerNamed },
  })
  registry.observe({ notifier, inbox, usage, onTurnOver: queue?.onTurnOver, onCallCounted: queue?.onCallCounted })

  const signIns =
    options.console && options.authenticate
      ? new SignIns({
          ...{ ...options.console, clock, logger, retryAfter },
          store: storage?.signIns ?? createMemorySignInStore(),
          ...{ shared: nodes !== undefined, tellOthers: nodes && (() => nodes.exchange.tell('signIns')) },
          keyOnce: (name, value) => channels.keyOnce(name, value),
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

  const findTarget: FindTarget = async ({ origin, payload }) => {
    switch (origin.kind) {
      case 'job':
        // jobs wait for a queue; among nodes those that have one go on with the job, and would wait for this one
        return queue ? queue.targetOf(payload as JobEvent, origin) : cluster ? undefined : 'later'
      case 'notification':
      case 'channel':
        return outward.targetOf(origin)
      case 'dispatch':
        return dispatcher.targetOf(origin.tool)
      case 'reminder':
        return undefined
    }
  }

  const targets = () => [...outward.targets(), ...dispatcher.targets()]
  const tellOfGone = () => {
    for (const target of targets())
      if (deliverer.isGone(target))
        logger.warn(
          { target: target.name },
          'this webhook answered 410 Gone: nothing is sent to it any more. Change its URL to begin again',
        )
  }

  /** As the queue shows it, also where there is none: the next process, or another node, may have one. @throws of one that cannot be read */
  const findJob = async (id: string) => {
    const kept = await storage?.queue.get(id)
    if (queue) return queue.get(id)
    return kept ? shown(kept.info) : undefined
  }

  const findMade = ({ kind, id }: Made) => {
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
  }

  if (cluster) goOnWithOthers(cluster, { queue, deliverer, outward, idempotency, findMade, logger, retryAfter })

  let state: 'built' | 'ready' | 'draining' = 'built'
  let closing: Promise<void> | undefined
  let startedAt = 0
  /** One step that fails, in a host's own store perhaps, keeps none of the others from being done. */
  const finish = async (step: () => unknown) => {
    try {
      await step()
    } catch (error) {
      logger.error({ err: toError(error) }, 'something could not be closed')
    }
  }
  const windDown = async () => {
    await finish(() => registry.endAll())
    await finish(() => queue?.close())
    await finish(() => registry.closeJournal())
    for (const store of former) await finish(() => store.close?.())
    await finish(() => toolEndpoint.close())
    await finish(() => deliverer.flush())
    await Promise.all([guard, operatorGuard, pushGuard].map((one) => finish(() => one.close())))
  }
  let callOff = () => {}
  /** A start that hangs does not keep a shutdown waiting. */
  const calledOff = new Promise<never>((_, reject) => {
    callOff = () => reject(new GatewayError('SG_ERR_SHUTTING_DOWN'))
  })
  calledOff.catch(() => {})
  /** What there was is others'; nothing of it is ended, and nobody is waited for. */
  const leaveBehind = async () => {
    endStep?.()
    feed.close()
    outward.stop()
    executions.close()
    cliProfiles.close()
    const parts = [toolEndpoint, deliverer, profiles, guard, operatorGuard, pushGuard]
    const gone = Promise.all(parts.map((one) => finish(() => one.close())))
    await within(STORAGE_CLOSE_MS, gone, { clock })
    // or the lease of the next member would let them work again
    await within(options.shutdownTimeoutMs, standing!.gone, { clock })
    await within(STORAGE_CLOSE_MS, storage!.close(), { clock })
  }
  const close = async () => {
    if (standing?.isLost) {
      state = 'draining'
      callOff()
      return leaveBehind().finally(() => standing.close())
    }
    const endsAt = clock.steady() + options.shutdownTimeoutMs
    state = 'draining'
    callOff()
    const left = cluster?.drain()
    registry.drain()
    queue?.drain()
    executions.close()
    cliProfiles.close()
    endStep?.()
    feed.close()
    outward.stop()
    await within(options.shutdownTimeoutMs, windDown(), { clock })
    await finish(() => deliverer.close())
    const leftMs = () => Math.max(endsAt - clock.steady(), STORAGE_CLOSE_MS)
    await finish(() => within(leftMs(), left, { clock }))
    await finish(() => within(leftMs(), profiles.close(), { clock }))
    if (storage) await finish(() => within(leftMs(), storage.close(), { clock }))
    standing?.close()
  }
  /** Where parked sessions were kept before the journal had them, and a host may still have some. */
  const former = storage ? [options.parking.store, storage.sessions].filter((store) => store !== undefined) : []
  const moveFormer = async () => {
    for (const store of former)
      await moveParked(store, storage!.journal, (error) => {
        logger.error(
          { err: toError(error) },
          'a parked session could not be moved to the journal; it is left where it is',
        )
        void tellOnError(options.parking.onError, logger, toError(error), { phase: 'adopt' })
      })
  }
  const keptIn = storage ? 'storage' : 'parking.store'
  const takeUp = async () => {
    const steps = [
      () => cluster?.announce(),
      () => storage?.open(),
      () => profiles.load(),
      () => (surroundings.createCliRunner ? undefined : endOrphans()),
      () => outward.open(),
      () => signIns?.open(),
      () => deliverer.restore(findTarget, (left) => outward.takeOver(left)),
      () => tellOfGone(),
      () => feed.open(),
      () => moveFormer(),
      () => registry.adopt(),
      () => outward.start(),
      () => (options.queue?.adapter ? queue?.start().catch((error) => unstarted(error, keptIn)) : queue?.start()),
      () => answerLeft(idempotency, findMade, { logger }),
    ]
    for (const step of steps) {
      if (state !== 'built') throw new GatewayError('SG_ERR_SHUTTING_DOWN')
      await step()
    }
  }
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
    webhooks: targets,
    idempotency,
    usage,
    signIns,
    cluster,
    get ready() {
      return state === 'ready' && this.writable
    },
    get writable() {
      return (watch?.available ?? true) && registry.isWritable && !standing?.stands
    },
    get startedAt() {
      return startedAt
    },
    get draining() {
      return state === 'draining'
    },
    async start() {
      const patience = clock.after(SLOW_START_MS, () =>
        logger.warn(
          { afterMs: SLOW_START_MS },
          'the stores are still being read; nothing is served before that is done',
        ),
      )
      try {
        await Promise.race([takeUp(), calledOff])
      } finally {
        patience.cancel()
      }
      if (state === 'built') state = 'ready'
      cluster?.started()
      startedAt = clock.now()
    },
    close() {
      closing ??= close()
      return closing
    },
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
