import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance, LogLevel } from 'fastify'
import fp from 'fastify-plugin'
import { CLOSE } from '../schemas/close-codes.js'
import { optionError } from '../src/errors.js'
import { createGateway, type Gateway } from '../src/gateway.js'
import { within } from '../src/lib/within.js'
import type { WorkerServerOptions } from '../src/options.js'
import { answerPages } from './answer-page.js'
import { createIdentify, requireIdentity } from './auth.js'
import { clusterParts } from './cluster.js'
import { clusterExchange } from './cluster-exchange.js'
import { watchConnections } from './connections.js'
import { consoleRoutes } from './console.js'
import { allowOrigins } from './cors.js'
import { directoryRoutes } from './directories.js'
import { docsPages } from './docs-page.js'
import { apiDocuments } from './documents.js'
import { guardHost, requireUpgrade } from './edge.js'
import { speaks } from './error-log.js'
import { answerAsOwn } from './errors.js'
import { executionRoutes } from './executions.js'
import { forwardToOwner } from './forwarding.js'
import { health } from './health.js'
import { markHops } from './hops.js'
import { replayIdempotent } from './idempotency.js'
import { jobRoutes } from './jobs.js'
import { parseJsonBodies, serializerCompiler, validatorCompiler } from './json.js'
import { refuseOtherMethods } from './methods.js'
import { metrics } from './metrics.js'
import { notificationStream } from './notification-stream.js'
import { notificationRoutes } from './notifications.js'
import { profileRoutes } from './profiles.js'
import { pushSubscriptionRoutes } from './push-subscriptions.js'
import { queueRelay } from './queue-relay.js'
import { queueStream } from './queue-stream.js'
import { sdkSessionRoutes } from './sdk-sessions.js'
import { sessionEvents, sessionSocket } from './session-stream.js'
import { sessionRoutes } from './sessions.js'
import { openToWebSockets } from './sockets.js'
import type { Splices } from './splices.js'
import { refuseWhileStanding } from './standing.js'
import { Streams } from './streams.js'
import { UnderWay } from './under-way.js'
import { isUpgrade } from './upgrades.js'
import { usageRoutes } from './usage.js'

/** `prefix` comes before `basePath`; the three are Fastify's own and do what they do for every plugin. */
export type GatewayPluginOptions = WorkerServerOptions & {
  gateway?: Gateway
  prefix?: string
  logLevel?: LogLevel
  logSerializers?: Record<string, (value: unknown) => string>
}

/**
 * The gateway in an existing Fastify service: `fastify.register(gatewayPlugin, options)`. Parsers, hooks, validator and error handler
 * live in a scope of their own under `basePath`; it installs no signal handlers, and several can share one server.
 * @throws SG_ERR_OPTION, when the registration is loaded
 */
export const gatewayPlugin = fp<GatewayPluginOptions>(
  async (fastify, { gateway: built, prefix: given = '', logLevel, logSerializers, ...options }) => {
    const prefix = asPrefix(given)
    const under = `${asPrefix(fastify.prefix)}${prefix}`
    const surroundings = { prefix: under, maxIdLength: maxParamLengthOf(fastify) }
    const gateway =
      built ?? createGateway({ ...(speaks(fastify.log) && { logger: fastify.log }), ...options }, surroundings)
    exposeGateway(fastify, gateway, prefix)
    const registration = { ...(logLevel && { logLevel }), ...(logSerializers && { logSerializers }) }
    const streams = new Streams(gateway)
    const { basePath } = gateway.options
    const underWay = new UnderWay()
    watchConnections(fastify)
    const { splices, listen, leave } = clusterParts(fastify, gateway)
    const identify = createIdentify(gateway)
    gateway.signIns?.onEnded((id) => streams.judge(({ signInId }) => signInId === id))
    await fastify.register(
      async (scope) => {
        // a server of its own waits for them by itself
        if (!built)
          scope.addHook('onRequest', (request, reply, done) => {
            if (!isUpgrade(request)) underWay.add(reply.raw)
            done()
          })
        await composeScope(scope, { host: fastify, gateway, identify, streams, splices })
      },
      {
        ...registration,
        prefix: `${prefix}${basePath}`,
      },
    )
    if (gateway.options.health) await fastify.register(health, { ...registration, prefix, gateway })
    if (gateway.options.metrics)
      await fastify.register(metrics, { ...registration, prefix, gateway, identify, streams })
    if (listen) fastify.addHook('onReady', listen)
    fastify.addHook('onReady', () => startInTime(fastify, gateway))
    // once it listens, and nobody waits for it
    fastify.addHook('onListen', async () => void gateway.cliProfiles.checkCredentials())
    fastify.addHook('preClose', async () => {
      await Promise.all([gateway.close(underWay.answered), streams.closeAll(), splices.closeAll(CLOSE.goingAway)])
      await leave?.()
    })
  },
  { fastify: '5.x', name: 'session-gateway' },
)

/** As Fastify reads it: with one slash before it, and none behind it. */
function asPrefix(given: string): string {
  const bare = given.replace(/^\/+|\/+$/g, '')
  return bare === '' ? '' : `/${bare}`
}

/** So much of the host's time for a plugin, a tenth at most, is left for saying what took so long. */
const TELLING_MS = 250

/** The host's Fastify gives up after its `pluginTimeout` and would blame a callback. */
async function startInTime({ initialConfig }: FastifyInstance, gateway: Gateway): Promise<void> {
  const { pluginTimeout = 0 } = initialConfig
  const starting = gateway.start()
  if (pluginTimeout === 0) return starting
  const onLate = () => {
    const refusal = `The stores of session-gateway were not read within the pluginTimeout of this Fastify (${pluginTimeout} ms). Give it more, or 0 for no limit.`
    throw new Error(refusal)
  }
  try {
    await within(pluginTimeout - Math.min(TELLING_MS, pluginTimeout / 10), starting, { onLate })
  } catch (error) {
    // nothing is to begin in a service that does not listen
    gateway.close().catch(() => {}) // it is told to whoever closes the host
    throw error
  }
}

interface Parts {
  host: FastifyInstance
  gateway: Gateway
  identify: ReturnType<typeof createIdentify>
  streams: Streams
  splices: Splices
}

/** Everything under `basePath`, in the order in which a request meets it. */
async function composeScope(parent: FastifyInstance, parts: Parts): Promise<void> {
  const scope = parent.withTypeProvider<TypeBoxTypeProvider>()
  const { gateway, identify } = parts
  scope.setValidatorCompiler(validatorCompiler)
  scope.setSerializerCompiler(serializerCompiler)
  answerAsOwn(scope, gateway)
  parseJsonBodies(scope, gateway.options.maxBodyBytes)
  markHops(scope, gateway)
  guardHost(scope, gateway)
  allowOrigins(scope, gateway)
  refuseWhileStanding(scope, gateway)
  requireIdentity(scope, gateway, identify)
  const methods = refuseOtherMethods(scope)
  forwardToOwner(scope, parts)
  replayIdempotent(scope, gateway)
  await scope.register(apiDocuments, { gateway })
  if (gateway.options.console) await scope.register(consoleRoutes, parts)
  if (gateway.options.docs !== false) await scope.register(docsPages, { gateway })
  await scope.register(sessionRoutes, { gateway })
  await scope.register(sessionEvents, parts)
  await scope.register(profileRoutes, { gateway })
  await scope.register(executionRoutes, { gateway })
  await scope.register(sdkSessionRoutes, { gateway })
  await scope.register(notificationRoutes, { gateway })
  await scope.register(usageRoutes, { gateway })
  await scope.register(directoryRoutes, { gateway })
  const { links, push, nodes, inbox } = gateway.notifications
  if (nodes) await scope.register(clusterExchange, { nodes, inbox })
  if (push) await scope.register(pushSubscriptionRoutes, { push, signIns: gateway.signIns })
  if (links) await scope.register(answerPages, { links })
  const { queue, clock, cluster } = gateway
  if (queue) await scope.register(jobRoutes, { queue, cluster })
  if (queue && cluster) await scope.register(queueRelay, { queue, clock })
  await scope.register(async (sockets) => composeSockets(sockets, parts))
  methods.complete()
}

/** What can be a WebSocket. */
async function composeSockets(scope: FastifyInstance, parts: Parts): Promise<void> {
  const { host, gateway } = parts
  const { queue, clock, cluster } = gateway
  requireUpgrade(scope)
  await openToWebSockets(host, scope, gateway)
  await scope.register(sessionSocket, parts)
  await scope.register(notificationStream, parts)
  if (queue) await scope.register(queueStream, { ...parts, queue, clock, cluster })
}

/** Both places where Fastify takes it, of which one has the default. */
function maxParamLengthOf({ initialConfig }: FastifyInstance): number {
  const { maxParamLength = 100, routerOptions } = initialConfig
  return maxParamLength === 100 ? (routerOptions?.maxParamLength ?? 100) : maxParamLength
}

const taken = (name: string): Error =>
  new Error(
    `session-gateway is at fastify.${name}, and this host has one of its own there: give yours another name, or register the gateway in a scope beside it.`,
  )

/** Where the scope is that was given a `gateways`, which scopes inside it have too. */
const placeOf = new WeakMap<object, string>()

/**
 * `fastify.gateways` has one entry per `basePath`, with its prefix when it was registered with one, and with that of its scope when the
 * `gateways` is of a scope around it; `fastify.gateway` is the one, while there is only one.
 */
function exposeGateway(fastify: FastifyInstance, gateway: Gateway, prefix: string): void {
  if (!fastify.hasDecorator('gateways')) {
    if (fastify.hasDecorator('gateway')) throw taken('gateway')
    const gateways: Record<string, Gateway> = {}
    placeOf.set(gateways, asPrefix(fastify.prefix))
    fastify.decorate('gateways', gateways)
    fastify.decorate('gateway', {
      getter: () => {
        const all = Object.values(gateways)
        return (all.length === 1 ? all[0] : undefined) as Gateway
      },
    })
  }
  const around = placeOf.get(fastify.gateways)
  if (around === undefined) throw taken('gateways')
  const inside = asPrefix(fastify.prefix).slice(around.length)
  const path = `${inside}${prefix}${gateway.options.basePath}`
  if (Object.hasOwn(fastify.gateways, path))
    throw optionError('basePath', `there is a gateway at ${JSON.stringify(path)} already; give this one another path`)
  fastify.gateways[path] = gateway
}
