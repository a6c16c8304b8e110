import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Origin, strict } from './common.js'
import { Agent } from './config-agents.js'
import { clusterSection as cluster } from './config-cluster.js'
import { consoleSection as console } from './config-console.js'
import { Count, Flag, Ms, Path, Secret, SecretRecord, SecretUrl, Section, VariableName } from './config-parts.js'
import { storage } from './config-storage.js'
import { NotificationType } from './notifications.js'
import { ProfileOptions } from './profiles.js'

/*
 * `gateway.json`, in the form it has after it was read: `${NAME}` replaced, secrets fetched, paths absolute. What the file itself may
 * hold (`"${NAME}"` for any string, `{ "file": path }` for any secret) follows from the two marks below; see src/daemon/config-schema.ts.
 * Every `default` here is the daemon's and is what an option that the file leaves out becomes.
 */

export { PATH_MARK, SECRET_MARK } from './config-parts.js'

export const ConfigToken = Section({
  name: Type.String({ minLength: 1, description: 'Whom the token stands for; unique.' }),
  sha256: Secret({
    pattern: '^[0-9a-f]{64}$',
    description: 'SHA-256 of the token, 64 lower-case hexadecimal digits. `session-gateway init` writes one.',
  }),
  allowedProfiles: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Profiles whose sessions and jobs the caller may see and touch. Left out: all. []: none.',
    }),
  ),
  canManageProfiles: Type.Optional(
    Flag({ default: false, description: 'Whether the caller may create, change and delete managed profiles.' }),
  ),
  expiresAt: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ minLength: 1 })], {
      description: 'When the token stops working: ISO 8601 ("2026-12-31T00:00:00Z") or epoch milliseconds.',
    }),
  ),
})
export type ConfigToken = Static<typeof ConfigToken>

const LogLevel = Type.Union(
  [
    Type.Literal('trace'),
    Type.Literal('debug'),
    Type.Literal('info'),
    Type.Literal('warn'),
    Type.Literal('error'),
    Type.Literal('fatal'),
    Type.Literal('silent'),
  ],
  { default: 'info' },
)

const listen = Section(
  {
    host: Type.Optional(Type.String({ minLength: 1, default: '127.0.0.1' })),
    port: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 65535, default: 8787, description: '0 picks a free one.' }),
    ),
  },
  { default: {}, description: 'Where the gateway listens. Without authentication only loopback is possible.' },
)

const auth = Section(
  { tokens: Type.Array(ConfigToken, { minItems: 1 }) },
  { description: 'Bearer tokens that are let in. Asked before the hook `authenticate`, when there are both.' },
)

const Profile = Type.Object(
  {
    ...ProfileOptions.properties,
    configDir: Type.Optional(Path({ description: 'Config directory of a cli profile; must exist.' })),
  },
  strict,
)

const managedProfiles = Section(
  {
    apiKeyEnvs: Type.Optional(
      Type.Array(VariableName({}), {
        description: 'Variables whose keys managed profiles may use, at the endpoint of the provider itself.',
      }),
    ),
    endpoints: Type.Optional(
      Type.Array(
        Section({
          baseUrl: Type.String({ minLength: 1 }),
          apiKeyEnv: Type.Optional(
            VariableName({ description: 'Variable whose key goes there; never the key. Left out: none.' }),
          ),
        }),
        { description: 'Where else the models of managed profiles may be; private addresses, too.' },
      ),
    ),
  },
  { description: 'What managed provider profiles may use. Left out: nothing, or what your own engine reads.' },
)

const parking = Section(
  {
    store: Type.Optional(
      Section(
        { dir: Path() },
        {
          description:
            'Keeps parked sessions in files of their own, where storage is "memory". A database keeps them itself, and takes those in such files over at the start.',
        },
      ),
    ),
    parkDelayMs: Type.Optional(
      Ms({ default: 2000, description: 'How long after the last client left a waiting session is parked.' }),
    ),
    expiredGraceMs: Type.Optional(
      Ms({ default: 60_000, description: 'Grace at start for deadlines that passed while the gateway was down.' }),
    ),
  },
  { default: {}, description: 'Sessions that wait for a deferred execution without a process.' },
)

const WebhookSecret = Type.Union([Secret(), Type.Array(Secret(), { minItems: 1, maxItems: 2 })], {
  description:
    'Signs deliveries (Standard Webhooks): whsec_ and a key as base64, or any other text as the key. Two while rotating.',
})

const channelFilter = {
  name: Type.Optional(
    Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$', description: 'Unique; default: the format. Reminders name it.' }),
  ),
  events: Type.Optional(Type.Array(NotificationType, { description: 'Left out: all four.' })),
  profiles: Type.Optional(Type.Array(Type.String(), { description: 'Left out: every profile.' })),
}

const Channel = Type.Union([
  Section({
    format: Type.Literal('webhook'),
    ...channelFilter,
    url: SecretUrl({ description: 'http or https; gets one POST per notification, as notifications.webhook does.' }),
    headers: Type.Optional(SecretRecord({ description: 'Sent with every delivery.' })),
    secret: Type.Optional(WebhookSecret),
  }),
  Section({
    format: Type.Literal('slack'),
    ...channelFilter,
    url: SecretUrl({ description: 'Of an incoming webhook of Slack, or of what understands the same.' }),
  }),
  Section({
    format: Type.Literal('ntfy'),
    ...channelFilter,
    url: SecretUrl({ description: 'Of the topic, as in https://ntfy.example/my-topic.' }),
    headers: Type.Optional(SecretRecord({ description: 'As in { "authorization": "Bearer tk_…" }.' })),
  }),
  Section({
    format: Type.Literal('web_push'),
    ...channelFilter,
    subject: Type.Optional(
      Type.String({
        pattern: '^(mailto:|https://).+',
        description: 'Whom a push service turns to, as in `mailto:ops@example.com`. Default: publicUrl.',
      }),
    ),
  }),
])

const notifications = Section(
  {
    webhook: Type.Optional(
      Section({
        url: SecretUrl({ description: 'http or https; gets one POST per notification.' }),
        headers: Type.Optional(SecretRecord({ description: 'Sent with every delivery.' })),
        events: Type.Optional(Type.Array(NotificationType, { description: 'Left out: all four.' })),
        secret: Type.Optional(WebhookSecret),
      }),
    ),
    channels: Type.Optional(
      Type.Array(Channel, {
        maxItems: 64,
        description: 'Where else notifications go: webhook, slack, ntfy, web_push.',
      }),
    ),
    reminders: Type.Optional(
      Type.Array(
        Section({
          afterMs: Ms({ description: 'After the request.' }, 1),
          channel: Type.String({ minLength: 1, description: 'Name of a channel, or webhook.' }),
        }),
        { maxItems: 16, description: 'Tells a channel again of a permission request that nobody has answered.' },
      ),
    ),
    publicUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^?#]+$',
        description: 'Under which people reach the gateway, without basePath. Needed for answerLinks.',
      }),
    ),
    answerLinks: Type.Optional(
      Type.Union(
        [
          Type.Boolean(),
          Section({
            only: Type.Optional(Type.Literal('deny', { description: 'A link can only deny.' })),
            tools: Type.Optional(
              Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: 'Left out: every tool.' }),
            ),
          }),
        ],
        {
          default: false,
          description:
            'Gives channels a link to each permission request: whoever holds it may answer that one request.',
        },
      ),
    ),
    answerLinkTtlMs: Type.Optional(
      Ms(
        { default: 86_400_000, description: 'How long a link works, if its request waits as long. Default one day.' },
        1,
      ),
    ),
    attempts: Type.Optional(Count({ default: 3 })),
    retryDelayMs: Type.Optional(Ms({ default: 500, description: 'Doubled on every retry.' })),
    retention: Type.Optional(
      Section(
        {
          maxCount: Type.Optional(Count({ default: 10_000 })),
          maxAgeMs: Type.Optional(Ms({ default: 604_800_000, minimum: 1 })),
        },
        { description: 'How many notifications can be read later, and for how long.' },
      ),
    ),
  },
  { description: 'Tells a webhook when a session needs somebody, finishes a turn, fails or ends.' },
)

const queue = Section(
  {
    maxConcurrency: Type.Optional(Count({ default: 1, description: 'Jobs that run at the same time.' })),
    maxQueuedJobs: Type.Optional(Count({ default: 100_000, description: 'Beyond it a job is refused with 429.' })),
    sessionTokenLimit: Type.Optional(Count({ description: 'Tokens per job run; beyond it the run fails.' })),
    dailyTokenLimit: Type.Optional(
      Count({ description: 'Tokens of all jobs per UTC day; beyond it the queue waits.' }),
    ),
    maxJobDurationMs: Type.Optional(Ms({ description: 'Time limit per run; parked time does not count.' }, 1)),
    maxParkedDurationMs: Type.Optional(Ms({ description: 'Limit on the parked time of one run.' }, 1)),
    killGraceMs: Type.Optional(Ms({ default: 5000, description: 'From interrupting a run to ending it by force.' })),
    retention: Type.Optional(
      Section(
        { maxAgeMs: Ms({}), sweepIntervalMs: Type.Optional(Ms({ default: 60_000 }, 1)) },
        { description: 'Left out: jobs are kept.' },
      ),
    ),
    webhookAttempts: Type.Optional(Count({ default: 3 })),
    webhookRetryDelayMs: Type.Optional(Ms({ default: 500, description: 'Doubled on every retry.' })),
    webhookSecret: Type.Optional(WebhookSecret),
  },
  { description: 'Turns on jobs: unattended sessions with limits, retries and webhooks.' },
)

const DeferredTool = Section({
  name: Type.String({ minLength: 1 }),
  description: Type.String(),
  inputSchema: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of the input.' }),
  timeoutMs: Type.Optional(Ms({ description: 'After it the call fails with reason "timeout".' }, 1)),
  dispatch: Type.Optional(
    Section({
      url: SecretUrl({ description: 'Gets one POST per call.' }),
      headers: Type.Optional(SecretRecord({})),
      secret: Type.Optional(WebhookSecret),
    }),
  ),
})

export const GatewayConfig = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: 'Where an editor finds this schema.' })),
    listen: Type.Optional(listen),
    auth: Type.Optional(auth),
    allowUnauthenticated: Type.Optional(
      Flag({ default: false, description: 'Lets everybody in who reaches the port. Loopback only.' }),
    ),
    allowedHosts: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Values of the Host header (host or host:port) that are served besides the loopback names.',
      }),
    ),
    allowedOrigins: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Web origins (scheme, host, port) whose pages may connect.',
      }),
    ),
    allowedCwdRoots: Type.Optional(
      Type.Array(Path(), { description: 'Directories that sessions may start in. Left out: any. []: none.' }),
    ),
    profiles: Type.Optional(
      Type.Array(Profile, { description: 'Left out: one named "default", when the agent has a config directory.' }),
    ),
    profileStore: Type.Optional(
      Type.Union([Type.Boolean(), Section({ file: Path() })], {
        description: 'Turns on profiles managed over HTTP: true keeps them in `storage`, { "file": path } in a file.',
      }),
    ),
    allowedConfigDirRoots: Type.Optional(
      Type.Array(Path(), { description: 'Where the configDir of a managed cli profile may lie. Left out: nowhere.' }),
    ),
    managedProfiles: Type.Optional(managedProfiles),
    allowConfigDirOverlap: Type.Optional(
      Flag({ default: false, description: 'Lets config directories lie in or around allowedCwdRoots.' }),
    ),
    agents: Type.Optional(Type.Array(Agent, { description: 'Command-line agents, added or changed.' })),
    cors: Type.Optional(
      Section(
        { origins: Type.Array(Origin) },
        { description: 'Web origins (as in https://app.example) whose pages may use all of the API.' },
      ),
    ),
    docs: Type.Optional(
      Type.Union([Type.Boolean(), Type.Literal('authenticated')], {
        default: true,
        description: 'Whether the API documents and their page are for everybody, or who is let in; false: no page.',
      }),
    ),
    console: Type.Optional(console),
    basePath: Type.Optional(
      Type.String({
        pattern: '^(/(?!\\.{1,2}(/|$))[A-Za-z0-9._~-]+)*$',
        default: '/v1',
        description: 'Prefix of all routes, as in /v1; no part is . or ..',
      }),
    ),
    maxBodyBytes: Type.Optional(Count({ default: 1_048_576, description: 'Size of a JSON body or a socket frame.' })),
    disableBypassPermissions: Type.Optional(
      Flag({ default: false, description: 'Refuses permissionMode bypassPermissions everywhere.' }),
    ),
    requireApiKey: Type.Optional(
      Flag({ default: false, description: 'Ends sessions that run on a personal login instead of an API key.' }),
    ),
    checkCredentials: Type.Optional(
      Type.Union([Type.Boolean(), Section({ timeoutMs: Type.Optional(Ms({ default: 10_000 }, 1)) })], {
        default: true,
        description: 'Warns at start about cli profiles that are not logged in.',
      }),
    ),
    storage: Type.Optional(storage),
    cluster: Type.Optional(cluster),
    hooks: Type.Optional(
      Path({
        description:
          'ES module exporting any of authenticate, buildRunnerConfig, createEngineRunner, onNotification, onEvent, onDispatch.',
      }),
    ),
    queue: Type.Optional(queue),
    notifications: Type.Optional(notifications),
    parking: Type.Optional(parking),
    executions: Type.Optional(
      Section({ tools: Type.Array(DeferredTool) }, { description: 'Tools whose work happens elsewhere.' }),
    ),
    webhookPolicy: Type.Optional(
      Section(
        {
          allowPrivateNetworks: Type.Optional(
            Flag({ default: false, description: 'Lets callers name webhooks on loopback and in private networks.' }),
          ),
          allowedHosts: Type.Optional(
            Type.Array(Type.String({ minLength: 1 }), { description: 'Hosts (host or host:port) let in regardless.' }),
          ),
          maxConnections: Type.Optional(
            Section(
              {
                perTarget: Type.Optional(Count({ default: 8, description: 'To one host and port.' })),
                total: Type.Optional(Count({ default: 64, description: 'To all of them.' })),
              },
              { default: {}, description: 'How many deliveries are under way at once.' },
            ),
          ),
        },
        { default: {}, description: 'Where webhooks that callers name may point. Metadata addresses: nowhere.' },
      ),
    ),
    eventLog: Type.Optional(
      Section(
        {
          maxEvents: Type.Optional(Count({ default: 100_000 })),
          maxBytes: Type.Optional(Count({ default: 16_777_216 })),
        },
        { default: {}, description: 'Events kept in memory per session.' },
      ),
    ),
    maxSessions: Type.Optional(Count({ default: 100_000, description: 'Beyond it a create is refused with 429.' })),
    maxSocketsPerSession: Type.Optional(Count({ default: 1000, description: 'Clients attached to one session.' })),
    sessionRetentionMs: Type.Optional(
      Ms({ default: 86_400_000, description: 'How long an ended session stays listed. Default one day.' }),
    ),
    idleReleaseMs: Type.Optional(
      Ms({ description: 'Releases the process of a session that was idle and alone for this long.' }),
    ),
    shutdownTimeoutMs: Type.Optional(
      Ms({ default: 30_000, description: 'How long running work may take to end at SIGTERM.' }),
    ),
    log: Type.Optional(
      Section(
        {
          level: Type.Optional(LogLevel),
          pretty: Type.Optional(
            Flag({ description: 'Lines for people instead of JSON. Default: whether stdout is a terminal.' }),
          ),
        },
        { default: {}, description: 'The log on stdout.' },
      ),
    ),
  },
  {
    ...strict,
    title: 'session-gateway configuration',
    description:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what the file holds
      'Any string may be "${NAME}" (environment variable), any secret { "file": path }; relative paths are relative to this file.',
  },
)
/** The configuration as the daemon uses it. */
export type GatewayConfig = Static<typeof GatewayConfig>

type Defaults<T> = { readonly [K in keyof T]-?: NonNullable<T[K]> }

/** What the members of a section become that are left out, where a `default` says so; the others are missing. */
export const defaultsOf = <T extends { properties: TProperties } & TSchema>({ properties }: T): Defaults<Static<T>> =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, member]) => ('default' in member ? [[name, member.default]] : [])),
  ) as Defaults<Static<T>>
