import { type Static, Type } from '@sinclair/typebox'
import { Dictionary, JsonObject, Milliseconds, StringEnum, strict } from './common.js'
import { PendingExecution } from './executions.js'
import { PermissionMode, PermissionRequest } from './permissions.js'

export const Engine = StringEnum('cli', 'provider')
export type Engine = Static<typeof Engine>

/**
 * `starting`: the runner is being built or has not reported in · `running`: a turn is in progress · `awaiting_approval`: blocked on at
 * least one permission request · `idle`: between turns · `parked`: waits without a process · `failed`, `closed`: terminal.
 */
export const SessionStatus = StringEnum(
  'starting',
  'running',
  'awaiting_approval',
  'idle',
  'parked',
  'failed',
  'closed',
)
export type SessionStatus = Static<typeof SessionStatus>

export const Capability = StringEnum('web_search', 'web_fetch', 'download', 'deliver_file')
export type Capability = Static<typeof Capability>

/** Token counts; of one turn, or cumulative, as the field that holds it says. */
export const TokenUsage = Type.Object({
  inputTokens: Type.Number(),
  outputTokens: Type.Number(),
  cacheCreationTokens: Type.Number(),
  cacheReadTokens: Type.Number(),
})
export type TokenUsage = Static<typeof TokenUsage>

export const SessionInfo = Type.Object({
  id: Type.String(),
  sdkSessionId: Type.Optional(Type.String()),
  status: SessionStatus,
  statusDetail: Type.Optional(Type.String()),
  profile: Type.String(),
  engine: Engine,
  agent: Type.Optional(Type.String()),
  title: Type.String(),
  cwd: Type.String(),
  model: Type.Optional(Type.String()),
  permissionMode: Type.Optional(Type.String()),
  apiKeySource: Type.Optional(Type.String()),
  createdAt: Type.Number(),
  lastActivityAt: Type.Number(),
  lastSeq: Type.Number(),
  pendingPermissions: Type.Number(),
  attachedClients: Type.Number(),
  numTurns: Type.Number(),
  cost: Type.Number(),
  usage: TokenUsage,
  parked: Type.Optional(
    Type.Object({
      since: Type.Number(),
      executions: Type.Array(PendingExecution),
      permissions: Type.Optional(Type.Array(PermissionRequest)),
    }),
  ),
  jobId: Type.Optional(Type.String()),
  meta: Type.Optional(JsonObject),
})
export type SessionInfo = Static<typeof SessionInfo>

export const McpServerConfig = Type.Union([
  Type.Object(
    {
      type: Type.Optional(Type.Literal('stdio')),
      command: Type.String({ minLength: 1 }),
      args: Type.Optional(Type.Array(Type.String())),
      env: Type.Optional(Dictionary(Type.String())),
    },
    strict,
  ),
  Type.Object(
    {
      type: StringEnum('http', 'sse'),
      url: Type.String({ minLength: 1 }),
      headers: Type.Optional(Dictionary(Type.String())),
    },
    strict,
  ),
])
export type McpServerConfig = Static<typeof McpServerConfig>

export const QuestionBehavior = StringEnum('ask', 'auto', 'deny')
export type QuestionBehavior = Static<typeof QuestionBehavior>

export const MAX_TITLE_LENGTH = 500
export const MAX_MODEL_LENGTH = 500

const createSessionFields = {
  cwd: Type.String(),
  profile: Type.Optional(Type.String()),
  permissionMode: Type.Optional(PermissionMode),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_MODEL_LENGTH })),
  allowDangerouslySkipPermissions: Type.Optional(Type.Boolean()),
  capabilities: Type.Optional(Type.Array(Capability, { maxItems: 64 })),
  mcpServers: Type.Optional(Dictionary(McpServerConfig)),
  title: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_TITLE_LENGTH })),
  allowedTools: Type.Optional(Type.Array(Type.String())),
  disallowedTools: Type.Optional(Type.Array(Type.String())),
  maxTurns: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  maxBudgetUsd: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  includePartialMessages: Type.Optional(Type.Boolean()),
  settingSources: Type.Optional(Type.Array(StringEnum('user', 'project', 'local'))),
  approvalTimeoutMs: Type.Optional(Milliseconds()),
  questionBehavior: Type.Optional(QuestionBehavior),
  meta: Type.Optional(JsonObject),
}

export const CreateSessionRequest = Type.Object(
  {
    ...createSessionFields,
    prompt: Type.Optional(Type.String({ minLength: 1 })),
    resume: Type.Optional(Type.String({ minLength: 1 })),
    forkSession: Type.Optional(Type.Boolean()),
  },
  strict,
)
export type CreateSessionRequest = Static<typeof CreateSessionRequest>

/** The session of a job: a prompt is required, and no earlier session can be resumed. */
export const JobSessionRequest = Type.Object({ ...createSessionFields, prompt: Type.String({ minLength: 1 }) }, strict)

export const UpdateSessionRequest = Type.Object(
  { title: Type.Union([Type.String({ minLength: 1, maxLength: MAX_TITLE_LENGTH }), Type.Null()]) },
  strict,
)
export type UpdateSessionRequest = Static<typeof UpdateSessionRequest>

export const SessionParams = Type.Object({ id: Type.String() })

/** Page of a list: `limit` defaults to the maximum; `cursor` is the opaque value of the `Link` header. */
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
  cursor: Type.Optional(Type.String()),
}

/** Of lists that take no parameters. */
export const NoQuery = Type.Object({}, strict)

export const ListSessionsQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(SessionStatus),
    profile: Type.Optional(Type.String()),
    engine: Type.Optional(Engine),
  },
  strict,
)
export type ListSessionsQuery = Static<typeof ListSessionsQuery>

export const SessionFileInfo = Type.Object({
  path: Type.String(),
  bytes: Type.Integer(),
  modifiedAt: Type.Number(),
})
export type SessionFileInfo = Static<typeof SessionFileInfo>

export const ListSessionFilesResponse = Type.Object({ files: Type.Array(SessionFileInfo) })
export type ListSessionFilesResponse = Static<typeof ListSessionFilesResponse>
