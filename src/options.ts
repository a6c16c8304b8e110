import type { FastifyRequest } from 'fastify'
import { defaultsOf, GatewayConfig } from '../schemas/config.js'
import { clusterSection } from '../schemas/config-cluster.js'
import { consoleSettings } from '../schemas/config-console.js'
import type { NotificationType, SessionNotification } from '../schemas/notifications.js'
import type { ProfileOptions } from '../schemas/profiles.js'
import { type ClusterOptions, type ResolvedClusterOptions, resolveClusterOptions } from './cluster/options.js'
import type { SignInOptions } from './console/sign-ins.js'
import type { AgentDeclaration } from './engines/cli/agent-table.js'
import type { CredentialProbe } from './engines/cli/credentials.js'
import { assertDeferredTools } from './engines/deferred-tools.js'
import type { CreateEngineRunner, DeferredTool } from './engines/runner.js'
import { optionError } from './errors.js'
import type { ExecutionDispatch } from './executions/dispatch.js'
import type { QueueServerOptions } from './jobs/options.js'
import { kindOf } from './lib/argument.js'
import { isRecord } from './lib/json-value.js'
import { consoleNotices, type Logger, silentLogger, withoutTrouble } from './lib/logger.js'
import { type PathRoots, rootsOption } from './lib/paths-within-roots.js'
import { unknownName } from './lib/unknown-name.js'
import { hostProblem, originProblem } from './lib/web-names.js'
import type { AnswerLinkLimits } from './notifications/answers/answer-links.js'
import type { ChannelOptions } from './notifications/channels/channels.js'
import type { NotificationRetention } from './notifications/feed.js'
import type { ReminderOptions } from './notifications/reminders.js'
import { OPTION_CHECKS, SHAPES } from './options-shape.js'
import type { PrincipalClaims } from './principal.js'
import type { ListSdkSessions } from './profiles/cli-profiles.js'
import type { ManagedProfileGrants } from './profiles/provider-grants.js'
import type { ProfileStore } from './profiles/store.js'
import type { BuildRunnerConfig } from './sessions/admission.js'
import type { ParkingOptions } from './sessions/kept/keeping.js'
import type { SessionStore } from './sessions/kept/store.js'
import { DEFAULT_EVENT_LOG_LIMITS, type EventLogLimits } from './sessions/log/event-log.js'
import type { GatewayStorage } from './storage/storage.js'
import type { ConnectionLimits } from './webhooks/slots.js'

/** Accepts a caller by returning something truthy; see `PrincipalClaims` for what it may carry. Covers upgrades too. */
export type Authenticate = (request: FastifyRequest) => unknown | Promise<unknown>
export type { PrincipalClaims }

/** What the gateway is built from. Defaults stand beside each option; the specification's table explains them. */
export interface WorkerServerOptions {
  /** Required unless `allowUnauthenticated`. */
  authenticate?: Authenticate
  /** Default false. For local development only. */
  allowUnauthenticated?: boolean
  /** Default: off, any directory. `[]` allows none. */
  allowedCwdRoots?: string[]
  /** Default: one named `default` when an agent's config directory is found. `[]`: none. */
  profiles?: ProfileOptions[]
  /** Default: none, and no management routes. */
  profileStore?: ProfileStore
  /** Default: off, managed profiles are provider profiles only. */
  allowedConfigDirRoots?: string[]
  /** The keys and endpoints that managed provider profiles may name. Default: none; any key where `createEngineRunner` is the host's own. */
  managedProfiles?: ManagedProfileGrants
  /** Lets config directories and `allowedCwdRoots` overlap. Default false: an agent could give itself another identity. */
  allowConfigDirOverlap?: boolean
  /** Required when a provider profile is declared. */
  createEngineRunner?: CreateEngineRunner
  buildRunnerConfig?: BuildRunnerConfig
  /** Default `/v1`. */
  basePath?: string
  /** Bytes of a JSON body or a socket frame. Default 1 MiB. */
  maxBodyBytes?: number
  /** Default false. */
  disableBypassPermissions?: boolean
  /** Default false. */
  requireApiKey?: boolean
  /** Default false. */
  checkCredentials?: boolean | { probe?: CredentialProbe; timeoutMs?: number }
  /** Default: the built-in lister. */
  listSdkSessions?: ListSdkSessions
  agents?: AgentDeclaration[]
  /** Defaults: a `MemorySessionStore`, 2,000 ms and 60,000 ms. */
  parking?: Partial<ParkingOptions>
  /** Default: nobody is told. */
  notifications?: NotificationOptions
  /** Default: no jobs. */
  queue?: QueueServerOptions
  /** Tools whose work happens elsewhere; every engine sees them. Default: none. */
  executions?: ExecutionOptions
  webhookPolicy?: {
    allowPrivateNetworks?: boolean
    allowedHosts?: string[]
    /** How many deliveries are under way at once, each on a connection. Default: 8 per target, 64 in all. */
    maxConnections?: ConnectionLimits
  }
  /** Origins of browsers that may open sockets, exact (`https://app.example`). Default: the server's own host. */
  allowedOrigins?: string[]
  /** Pages of these origins, exact, may use all of the API, sockets included. Default: none. */
  cors?: { origins: string[] }
  /**
   * Whether openapi.json, asyncapi.json and the page `{basePath}/docs` are for everybody (true, the default) or for callers that are let in
   * (`authenticated`). False: no page, and the documents for callers that are let in.
   */
  docs?: boolean | 'authenticated'
  /**
   * Mounts the console, a web application for people, under `{basePath}/console/`. A sign-in there ends when it is not used for
   * `sessionTtlMs` (default 12 hours), at the latest after `sessionMaxAgeMs` (default 7 days). Default false.
   */
  console?: boolean | Partial<SignInOptions>
  /** Values of the Host header that are served, as `host` or `host:port`. Default: any. */
  allowedHosts?: string[]
  /** Sessions that are not terminal. Default 100,000. */
  maxSessions?: number
  /** Clients of one session. Default 1,000. */
  maxSocketsPerSession?: number
  /** Default 100,000 events and 16 MiB per session. */
  eventLog?: Partial<EventLogLimits>
  /** How long a terminal session stays listed. Default: until DELETE. */
  sessionRetentionMs?: number
  /** After that long without a turn or a client the engine of a session goes; the next command starts it again. Default: never. */
  idleReleaseMs?: number
  /** Keeps everything that outlives the process, where no store of its own is given. Default: memory. */
  storage?: GatewayStorage
  /** Makes this one of several nodes that share `storage`, which has to be PostgreSQL. Default: it has everything to itself. */
  cluster?: ClusterOptions
  /** Default 30,000. */
  shutdownTimeoutMs?: number
  /** Any pino-like logger. Default: the Fastify instance's, else silent but for warnings about credentials, which go to the console. */
  logger?: Logger
  /** Mounts `GET /healthz` and `GET /readyz`, outside `basePath` and without authentication. Default false. */
  health?: boolean
  /** Mounts `GET /metrics` behind `authenticate`. Default false. */
  metrics?: boolean
}

/** Who is told when a session needs an approval, finishes a turn, fails or ends. */
export interface NotificationOptions {
  /** `events` defaults to all four; `secret` signs (Standard Webhooks), two while rotating. */
  webhook?: { url: string; headers?: Record<string, string>; events?: NotificationType[]; secret?: string | string[] }
  /** Where else notifications go: a further webhook, Slack, ntfy, browsers by web push. Default: nowhere. */
  channels?: ChannelOptions[]
  /** Tells a channel again of a permission request that nobody has answered after so long. Default: never. */
  reminders?: ReminderOptions[]
  /** Under which people reach this gateway, as `https://gateway.example`; what stands before `basePath`. Needed for answer links. */
  publicUrl?: string
  /**
   * Whether what channels are told of a permission request has an `answerUrl`: a page where whoever holds the link answers that one
   * request, without credentials; all of them, or as limited. Default false.
   */
  answerLinks?: boolean | AnswerLinkLimits
  /** How long a link works; never longer than its request waits. Default one day. */
  answerLinkTtlMs?: number
  /** Hears of every notification in this process. */
  onNotification?: (notification: SessionNotification) => unknown
  /** Attempts per delivery. Default 3. */
  attempts?: number
  /** Before the second attempt; doubled for every further one. Default 500. */
  retryDelayMs?: number
  /** How many notifications can be read later, and for how long, whoever is told. Default 10,000 and 7 days. */
  retention?: Partial<NotificationRetention>
}

export interface ExecutionOptions {
  tools: DeferredToolOptions[]
  /** Hears of every deferred execution in this process; may deliver the result at once. */
  onDispatch?: (execution: ExecutionDispatch) => unknown
}

/** A deferred tool, and who is told of its calls: POSTed to `dispatch.url`, signed with `secret` (Standard Webhooks). */
export interface DeferredToolOptions extends DeferredTool {
  dispatch?: { url: string; headers?: Record<string, string>; secret?: string | string[] }
}

/** Options as the code reads them: defaults filled in, once. */
export interface ResolvedOptions extends Omit<WorkerServerOptions, 'parking' | 'console' | 'cluster'> {
  basePath: string
  maxBodyBytes: number
  disableBypassPermissions: boolean
  requireApiKey: boolean
  maxSessions: number
  maxSocketsPerSession: number
  eventLog: EventLogLimits
  shutdownTimeoutMs: number
  docs: boolean | 'authenticated'
  /** Absent: there is none. */
  console: SignInOptions | undefined
  /** Absent: it is alone. */
  cluster: ResolvedClusterOptions | undefined
  logger: Logger
  /** Where the few lines go that every operator is to see: the console when there is no logger. */
  notices: Logger
  parking: Omit<ParkingOptions, 'store'> & { store: SessionStore | undefined }
  cwdRoots: PathRoots | undefined
}

/** Keys of the file that say how the daemon is run. */
type DaemonKey = '$schema' | 'listen' | 'auth' | 'hooks' | 'log'

/** Fails to compile when an option, or a key of the file, has no row. */
SHAPES satisfies Record<keyof WorkerServerOptions | Exclude<keyof GatewayConfig, DaemonKey>, object>

const DEFAULTS = defaultsOf(GatewayConfig)
const delays = defaultsOf(GatewayConfig.properties.parking)

/**
 * Checks every option and fills in the defaults.
 * @throws SG_ERR_OPTION naming the option and what is wrong with it
 */
export function resolveOptions(options: WorkerServerOptions = {}): ResolvedOptions {
  if (!isRecord(options as unknown)) throw optionError('options', `must be an object, not ${kindOf(options)}.`)
  assertKnown(options)
  assertShapes(options)
  assertNames(options)
  if (!options.authenticate && options.allowUnauthenticated !== true)
    throw optionError('authenticate', 'is required; or set allowUnauthenticated: true, for local development only.')
  const logger = options.logger && withoutTrouble(options.logger)
  assertDeferredTools(options.executions?.tools ?? [], 'executions.tools')
  return {
    ...options,
    basePath: resolveBasePath(options.basePath),
    maxBodyBytes: options.maxBodyBytes ?? DEFAULTS.maxBodyBytes,
    disableBypassPermissions: options.disableBypassPermissions ?? DEFAULTS.disableBypassPermissions,
    requireApiKey: options.requireApiKey ?? DEFAULTS.requireApiKey,
    maxSessions: options.maxSessions ?? DEFAULTS.maxSessions,
    maxSocketsPerSession: options.maxSocketsPerSession ?? DEFAULTS.maxSocketsPerSession,
    eventLog: { ...DEFAULT_EVENT_LOG_LIMITS, ...options.eventLog },
    shutdownTimeoutMs: options.shutdownTimeoutMs ?? DEFAULTS.shutdownTimeoutMs,
    docs: options.docs ?? DEFAULTS.docs,
    console: consoleOption(options.console),
    cluster: options.cluster && resolveClusterOptions(options.cluster, defaultsOf(clusterSection), options.storage),
    logger: logger ?? silentLogger,
    notices: logger ?? consoleNotices,
    parking: {
      store: options.parking?.store,
      parkDelayMs: options.parking?.parkDelayMs ?? delays.parkDelayMs,
      expiredGraceMs: options.parking?.expiredGraceMs ?? delays.expiredGraceMs,
      onError: options.parking?.onError,
    },
    cwdRoots: rootsOption('allowedCwdRoots', options.allowedCwdRoots),
  }
}

function assertShapes(options: WorkerServerOptions): void {
  for (const [name, shape] of OPTION_CHECKS) {
    const value = options[name as keyof WorkerServerOptions]
    if (value === undefined) continue
    const [first] = shape.errors(value, name)
    if (first) throw optionError(first.path, first.message)
  }
}

/** Origins and hosts are compared as they stand: one in another form would let in nobody, without a word. */
function assertNames({ allowedOrigins, allowedHosts, webhookPolicy }: WorkerServerOptions): void {
  const lists: [option: string, names: readonly string[] | undefined, problemOf: typeof hostProblem][] = [
    ['allowedOrigins', allowedOrigins, originProblem],
    ['allowedHosts', allowedHosts, hostProblem],
    ['webhookPolicy.allowedHosts', webhookPolicy?.allowedHosts, hostProblem],
  ]
  for (const [option, names = [], problemOf] of lists)
    for (const problem of names.map(problemOf)) if (problem) throw optionError(option, `${problem}.`)
}

/** One that is misspelt would be one that has no effect, a limit perhaps. */
function assertKnown(options: WorkerServerOptions): void {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && !OPTION_CHECKS.has(name))
      throw optionError(name, `${unknownName('option', name, [...OPTION_CHECKS.keys()])}.`.replace('?.', '?'))
}

function consoleOption(given: WorkerServerOptions['console']): SignInOptions | undefined {
  if (!given) return undefined
  return { ...defaultsOf(consoleSettings), ...(given === true ? {} : given) }
}

function resolveBasePath(basePath = DEFAULTS.basePath): string {
  const trimmed = basePath.replace(/\/+$/, '')
  // clients take out what is . or .., and would come elsewhere
  if (!/^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)*$/.test(trimmed))
    throw optionError(
      'basePath',
      `${JSON.stringify(basePath)} must look like /v1 or /agents/v1, and no part of it is . or ..`,
    )
  return trimmed
}
