import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { announceEnd, limitConnections } from '../plugins/connections.js'
import { answerClientError, sendProblem } from '../plugins/errors.js'
import { gatewayPlugin } from '../plugins/gateway.js'
import { startWithServer } from '../plugins/own-start.js'
import { RequestLog } from '../plugins/request-log.js'
import { UnderWay } from '../plugins/under-way.js'
import { GatewayError, hasCode, optionError } from './errors.js'
import type { Gateway } from './gateway/shape.js'
import { createGateway, MAX_ID_LENGTH, type Surroundings } from './gateway.js'
import type { JobQueue } from './jobs/queue.js'
import { descriptorLimit } from './lib/descriptors.js'
import { type Logger, withoutTrouble } from './lib/logger.js'
import { newId } from './lib/new-id.js'
import { keepTickShape } from './lib/tick-shape.js'
import { listenHostProblem } from './lib/web-names.js'
import type { WorkerServerOptions } from './options.js'
import type { SessionRegistry } from './sessions/registry.js'

export interface WorkerServer {
  /** The underlying HTTP server. One that is made to listen by itself starts the gateway; `listen` says when it has started. */
  readonly server: Server
  readonly registry: SessionRegistry
  /** Present only when `queue` options were given. */
  readonly queue?: JobQueue
  /**
   * Starts listening, after the stores were read. `port` 0 picks one; `host` defaults to 127.0.0.1.
   * @throws SG_ERR_SHUTTING_DOWN once it was closed · SG_ERR_OPTION of a host that is none
   */
  listen(port: number, host?: string): Promise<{ port: number; host: string; url: string }>
  /** Stops the service; settles within `shutdownTimeoutMs`. */
  close(): Promise<void>
}

/** A caller has this long to send its headers, then its whole request. */
const HEADERS_MS = 20_000
const REQUEST_MS = 60_000
const CHECK_MS = 5_000
/** What is stored may be much, and its disk slow: reading it takes as long as it takes. */
const NO_START_LIMIT = 0

/**
 * The gateway as a server of its own.
 * @throws SG_ERR_OPTION on every startup failure that can be seen now
 */
export function createWorkerServer(options: WorkerServerOptions, surroundings: Surroundings = {}): WorkerServer {
  const gateway = createGateway(options, surroundings)
  keepTickShape()
  const app = appFor(gateway, options)
  let listens = false
  startWithServer(app.server, async () => {
    const isAlone = !listens
    listens = true
    try {
      await app.ready()
    } catch (err) {
      // whoever called listen hears it there, and whoever closed it meanwhile knows
      if (isAlone && !gateway.draining) gateway.options.notices.warn({ err }, 'the gateway could not start')
      throw err
    }
    if (isAlone) void gateway.cliProfiles.checkCredentials()
  })
  const underWay = new UnderWay()
  app.server.on('request', (_request, response) => underWay.add(response))
  return {
    server: app.server,
    registry: gateway.registry,
    ...(gateway.queue && { queue: gateway.queue }),
    async listen(port, host = '127.0.0.1') {
      // Fastify would listen once more, and no close() would end that
      if (gateway.draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
      const problem = typeof host === 'string' ? listenHostProblem(host) : undefined
      if (problem) throw optionError('listen(port, host)', `host ${problem}.`)
      listens = true
      const url = await app.listen({ port, host })
      const address = app.server.address() as AddressInfo
      return { port: address.port, host: address.address, url }
    },
    async close() {
      // drained first, while connections are still answered: 503
      await gateway.close(underWay.answered)
      await app.close().catch((error) => {
        // a start that was called off is told to who waits for it
        if (!hasCode(error, 'SG_ERR_SHUTTING_DOWN')) throw error
      })
    },
  }
}

/** What listens: it carries the gateway alone, and answers in its way what does not reach that. */
function appFor(gateway: Gateway, options: WorkerServerOptions): FastifyInstance {
  const app = fastify({
    ...(isFullLogger(options.logger) && {
      loggerInstance: ofServer(options.logger),
      logController: new RequestLog(),
    }),
    // refusals name it: one that counted would tell everybody how much is asked here, and come again after a restart
    genReqId: () => newId(),
    bodyLimit: gateway.options.maxBodyBytes,
    requestTimeout: REQUEST_MS,
    pluginTimeout: NO_START_LIMIT,
    // both places, or Fastify switches Node's own defence off
    http: { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: CHECK_MS },
    forceCloseConnections: true,
    // the gateway refuses by itself what comes then, as a problem
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    routerOptions: { maxParamLength: MAX_ID_LENGTH },
    frameworkErrors: (error, request, reply) => {
      // an upgrade that is refused here meets no hook
      announceEnd(request, reply)
      void sendProblem(error, request, reply)
    },
  }) as unknown as FastifyInstance
  limitConnections(app.server, descriptorLimit()?.soft ?? Number.POSITIVE_INFINITY, gateway.options.logger)
  // with an empty basePath the gateway's own, behind authenticate, is the one for every path
  if (gateway.options.basePath !== '')
    app.setNotFoundHandler((request, reply) => sendProblem(new GatewayError('SG_ERR_NOT_FOUND'), request, reply))
  if (gateway.options.console && gateway.options.basePath !== '') leadToConsole(app, gateway.options.basePath)
  app.register(gatewayPlugin, { ...options, gateway }).after(() => {
    // as Fastify does, but only where it is the one that listens
    app.addHook('preClose', async () => app.server.closeAllConnections())
  })
  return app
}

/** `/console` is where people look for it; relative, so that it leads there behind whatever a proxy puts before it. */
function leadToConsole(app: FastifyInstance, basePath: string): void {
  app.get('/console', (_request, reply) => reply.redirect(`.${basePath}/console/`, 308))
  app.get('/console/', (_request, reply) => reply.redirect(`..${basePath}/console/`, 308))
}

/** Requests are logged by a logger that has all that Fastify asks of one; a smaller one still hears of what matters. */
const isFullLogger = (logger: Logger | undefined): logger is Logger & FastifyBaseLogger =>
  typeof (logger as Partial<FastifyBaseLogger> | undefined)?.child === 'function'

/** What Fastify makes of it for itself writes without trouble; what it makes of that for each request has its lines from the gateway. */
const ofServer = (logger: FastifyBaseLogger): FastifyBaseLogger =>
  takingAfter(logger, {
    child(...given: Parameters<FastifyBaseLogger['child']>) {
      const own = logger.child(...given)
      const child: FastifyBaseLogger['child'] = (...ofRequest) => own.child(...ofRequest)
      return takingAfter(own, { ...withoutTrouble(own), child })
    },
  })

/** Not assigned: a logger that is frozen lets nothing that takes after it be assigned what it has. */
const takingAfter = (logger: FastifyBaseLogger, own: object): FastifyBaseLogger =>
  Object.create(logger, Object.getOwnPropertyDescriptors(own))
