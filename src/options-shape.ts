import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Dictionary, JsonObject, Milliseconds, Origin, strict } from '../schemas/common.js'
import { NotificationType } from '../schemas/notifications.js'
import { type Checker, compileSchema } from './lib/validation.js'

const Fn = Type.Function([], Type.Any())
const Obj = Type.Object({})
const Text = Type.String({ minLength: 1 })
const Texts = Type.Array(Text)
const Flag = Type.Boolean()
const Count = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Headers = Dictionary(Type.String())
const Secret = Type.Union([Text, Type.Array(Text, { minItems: 1, maxItems: 2 })])
const Section = (properties: TProperties) => Type.Object(properties, strict)
const optional = (properties: Record<string, TSchema>) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)]))

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
    ...{ command: Text, args: Type.Array(Type.String()), env: Headers, configDirEnv: Text, modes: Headers },
    auth: Section({ method: Text, ...optional({ apiKeyEnv: Text }) }),
  }),
})

const Queue = Section(
  optional({
    maxConcurrency: Count,
    maxQueuedJobs: Count,
    sessionTokenLimit: Count,
    dailyTokenLimit: Count,
    maxJobDurationMs: Milliseconds(1),
    maxParkedDurationMs: Milliseconds(1),
    killGraceMs: Milliseconds(),
    retention: Section({ maxAgeMs: Milliseconds(), ...optional({ sweepIntervalMs: Milliseconds(1) }) }),
    adapter: Obj,
    webhookAttempts: Count,
    webhookRetryDelayMs: Milliseconds(),
    webhookSecret: Secret,
    onEvent: Fn,
  }),
)

/** What each option must look like; profiles have a validation of their own, which names the profile. */
const SHAPES: Record<string, TSchema> = {
  authenticate: Fn,
  allowUnauthenticated: Flag,
  allowedCwdRoots: Texts,
  profiles: Type.Array(Type.Unknown()),
  profileStore: Type.Object({ list: Fn, save: Fn, delete: Fn }),
  allowedConfigDirRoots: Texts,
  managedProfiles: Section(
    optional({
      apiKeyEnvs: Texts,
      endpoints: Type.Array(Section({ baseUrl: Text, ...optional({ apiKeyEnv: Text }) })),
    }),
  ),
  allowConfigDirOverlap: Flag,
  createEngineRunner: Fn,
  buildRunnerConfig: Fn,
  basePath: Type.String(),
  maxBodyBytes: Count,
  disableBypassPermissions: Flag,
  requireApiKey: Flag,
  checkCredentials: Type.Union([Flag, Section(optional({ probe: Fn, timeoutMs: Milliseconds(1) }))]),
  listSdkSessions: Fn,
  agents: Type.Array(Agent),
  parking: Section(optional({ store: Obj, parkDelayMs: Milliseconds(), expiredGraceMs: Milliseconds(), onError: Fn })),
  notifications: Section(
    optional({
      webhook: Section({
        url: Text,
        ...optional({ headers: Headers, events: Type.Array(NotificationType), secret: Secret }),
      }),
      onNotification: Fn,
      attempts: Count,
      retryDelayMs: Milliseconds(),
      retention: Section(optional({ maxCount: Count, maxAgeMs: Milliseconds(1) })),
    }),
  ),
  queue: Queue,
  executions: Section({ tools: Type.Array(DeferredTool), ...optional({ onDispatch: Fn }) }),
  webhookPolicy: Section(
    optional({
      allowPrivateNetworks: Flag,
      allowedHosts: Texts,
      maxConnections: Section(optional({ perTarget: Count, total: Count })),
    }),
  ),
  allowedOrigins: Texts,
  allowedHosts: Texts,
  cors: Section({ origins: Type.Array(Origin) }),
  docs: Type.Union([Flag, Type.Literal('authenticated')]),
  maxSessions: Count,
  maxSocketsPerSession: Count,
  eventLog: Section(optional({ maxEvents: Count, maxBytes: Count })),
  sessionRetentionMs: Milliseconds(),
  idleReleaseMs: Milliseconds(),
  storage: Type.Object({
    ...{ sessions: Type.Optional(Obj), journal: Obj, profiles: Obj, queue: Obj, idempotency: Obj, outbox: Obj },
    ...{ open: Fn, close: Fn },
  }),
  shutdownTimeoutMs: Milliseconds(),
  logger: Obj,
  health: Flag,
  metrics: Flag,
}

export const OPTION_SHAPES: ReadonlyMap<string, Checker<unknown>> = new Map(
  Object.entries(SHAPES).map(([name, schema]) => [name, compileSchema(schema)]),
)
