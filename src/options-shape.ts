import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Dictionary, JsonObject, Milliseconds, strict } from '../schemas/common.js'
import { GatewayConfig } from '../schemas/config.js'
import { NotificationType } from '../schemas/notifications.js'
import { CLI_PERMISSION_MODES } from '../schemas/permissions.js'
import { type Checker, compileSchema } from './lib/validation.js'

const Fn = Type.Function([], Type.Any())
const Obj = Type.Object({})
const Text = Type.String({ minLength: 1 })
const Count = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Headers = Dictionary(Type.String())
const Secret = Type.Union([Text, Type.Array(Text, { minItems: 1, maxItems: 2 })])
const Section = (properties: TProperties) => Type.Object(properties, strict)
const optional = (properties: Record<string, TSchema>) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)]))

/** Something with these methods, and what else it likes. */
const having = (...methods: string[]) => Type.Object(Object.fromEntries(methods.map((name) => [name, Fn])))
const QueueAdapter = having(...['add', 'claimNext', 'get', 'list', 'update', 'prune', 'addDailyTokens', 'dailyTokens'])

const DeferredTool = Section({
  name: Text,
  description: Type.String(),
  inputSchema: JsonObject,
  ...optional({
    timeoutMs: Milliseconds(1),
    dispatch: Section({ url: Text, ...optional({ headers: Headers, secret: Secret }) }),
  }),
})

const Agent = Section({
  name: Text,
  ...optional({
    ...{ command: Text, args: Type.Array(Type.String()), env: Headers, configDirEnv: Text },
    modes: Section(optional(Object.fromEntries(CLI_PERMISSION_MODES.map((mode) => [mode, Type.String()])))),
    auth: Section({ method: Text, ...optional({ apiKeyEnv: Text }) }),
  }),
})

/** A section of the file, with what only a host can give. */
const beside = (section: { properties: TProperties }, more: Record<string, TSchema>) =>
  Section({ ...section.properties, ...optional(more) })

const file = GatewayConfig.properties
const told = file.notifications.properties

/**
 * What each option must look like. What the configuration file has, it says, with its default and its sentence; profiles have a validation
 * of their own, which names the profile.
 */
export const SHAPES = {
  authenticate: Fn,
  allowUnauthenticated: file.allowUnauthenticated,
  allowedCwdRoots: file.allowedCwdRoots,
  profiles: Type.Array(Type.Unknown()),
  profileStore: having('list', 'save', 'delete'),
  allowedConfigDirRoots: file.allowedConfigDirRoots,
  managedProfiles: file.managedProfiles,
  allowConfigDirOverlap: file.allowConfigDirOverlap,
  createEngineRunner: Fn,
  buildRunnerConfig: Fn,
  basePath: Type.String(),
  maxBodyBytes: file.maxBodyBytes,
  disableBypassPermissions: file.disableBypassPermissions,
  requireApiKey: file.requireApiKey,
  checkCredentials: Type.Union([Type.Boolean(), Section(optional({ probe: Fn, timeoutMs: Milliseconds(1) }))]),
  listSdkSessions: Fn,
  agents: Type.Array(Agent),
  parking: beside(file.parking, { store: having('save', 'get', 'list', 'delete'), onError: Fn }),
  notifications: Section(
    optional({
      webhook: Section({
        url: Text,
        ...optional({ headers: Headers, events: Type.Array(NotificationType), secret: Secret }),
      }),
      ...{ channels: told.channels, reminders: told.reminders, publicUrl: told.publicUrl },
      ...{ answerLinks: told.answerLinks, answerLinkTtlMs: told.answerLinkTtlMs },
      onNotification: Fn,
      attempts: Count,
      retryDelayMs: Milliseconds(),
      retention: Section(optional({ maxCount: Count, maxAgeMs: Milliseconds(1) })),
    }),
  ),
  queue: beside(file.queue, { adapter: QueueAdapter, onEvent: Fn }),
  executions: Section({ tools: Type.Array(DeferredTool), ...optional({ onDispatch: Fn }) }),
  webhookPolicy: file.webhookPolicy,
  allowedOrigins: file.allowedOrigins,
  allowedHosts: file.allowedHosts,
  cors: file.cors,
  docs: file.docs,
  console: file.console,
  maxSessions: file.maxSessions,
  maxSocketsPerSession: file.maxSocketsPerSession,
  eventLog: file.eventLog,
  sessionRetentionMs: file.sessionRetentionMs,
  idleReleaseMs: file.idleReleaseMs,
  storage: Type.Object({
    ...{ sessions: Type.Optional(Obj), journal: Obj, profiles: Obj, queue: Obj, idempotency: Obj, outbox: Obj },
    ...{ open: Fn, close: Fn },
  }),
  cluster: file.cluster,
  shutdownTimeoutMs: file.shutdownTimeoutMs,
  logger: having('info', 'warn', 'error'),
  health: Type.Boolean(),
  metrics: Type.Boolean(),
}

export const OPTION_CHECKS: ReadonlyMap<string, Checker<unknown>> = new Map(
  Object.entries(SHAPES).map(([name, schema]) => [name, compileSchema(schema)]),
)
