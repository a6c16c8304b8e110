import { type Static, Type } from '@sinclair/typebox'
import {
  Count,
  Dictionary,
  described,
  Flag,
  JsonObject,
  Milliseconds,
  Moment,
  StringEnum,
  strict,
  Text,
} from './common.js'
import { PendingExecution } from './executions.js'
import { PermissionMode, PermissionRequest } from './permissions.js'

export const Engine = described(
  StringEnum('cli', 'provider'),
  '`cli`: a command-line agent. `provider`: the loop of the gateway itself, on the models of a provider.',
)
export type Engine = Static<typeof Engine>

export const SessionStatus = described(
  StringEnum('starting', 'running', 'awaiting_approval', 'idle', 'parked', 'failed', 'closed'),
  '`starting`: its engine is being started · `running`: a turn is in progress · `awaiting_approval`: blocked on at least one permission request · `idle`: between turns · `parked`: waits without a process · `failed`, `closed`: over; it stays listed until it is removed.',
)
export type SessionStatus = Static<typeof SessionStatus>

export const Capability = described(
  StringEnum('web_search', 'web_fetch', 'download', 'deliver_file'),
  'What a provider session may be granted beyond its files.',
)
export type Capability = Static<typeof Capability>

export const TokenUsage = Type.Object(
  {
    inputTokens: Count('Read, and neither taken from a cache nor written to one.'),
    outputTokens: Count('Written by the model.'),
    cacheCreationTokens: Count('Read and written to a cache.'),
    cacheReadTokens: Count('Taken from a cache.'),
  },
  { description: 'Token counts; of one turn, or of all of them, as the field that holds it says.' },
)
export type TokenUsage = Static<typeof TokenUsage>

const Parked = Type.Object(
  {
    since: Moment('When it was parked'),
    executions: Type.Array(PendingExecution, { description: 'Results that it waits for.' }),
    permissions: Type.Optional(Type.Array(PermissionRequest, { description: 'Answers that it waits for.' })),
  },
  { description: 'What it waits for, while it is parked.' },
)

export const SessionInfo = Type.Object(
  {
    id: Text('Stays the same over parks, wakes, resumes and restarts.'),
    sdkSessionId: Type.Optional(Text("The engine's own id of the session; what `resume` of a create takes.")),
    status: SessionStatus,
    statusDetail: Type.Optional(
      Text('Why it has this status, in a few words; of `failed`, the error, of which `session_error` tells all.'),
    ),
    profile: Text('Who it runs as; empty where the gateway has no profiles.'),
    engine: Engine,
    agent: Type.Optional(Text('Which command-line agent runs it; `cli` only.')),
    title: Text(
      "The title that it was given, else the engine's own, else the beginning of its first prompt, else the name of its directory.",
    ),
    cwd: Text('The directory it works in, resolved.'),
    model: Type.Optional(Text('The model that it is on; absent until it is known.')),
    permissionMode: Type.Optional(Text('What it may do without asking, now.')),
    apiKeySource: Type.Optional(Text('Where the upstream credential comes from; `oauth` is a personal login.')),
    createdAt: Moment('When it was created'),
    lastActivityAt: Moment('When something happened in it last'),
    lastSeq: Count('The highest `seq` in its log; 0 while nothing is.'),
    pendingPermissions: Count('How many approvals and questions wait for an answer.'),
    attachedClients: Count('How many clients follow it now.'),
    numTurns: Count('Turns so far.'),
    cost: Count('Of all turns so far, US dollars; 0 until it is known.'),
    usage: described(TokenUsage, 'Of all turns so far.'),
    parked: Type.Optional(Parked),
    jobId: Type.Optional(Text('The job that it is a run of.')),
    meta: Type.Optional(described(JsonObject, 'What the create had as `meta`.')),
  },
  { description: 'A session as it is now.' },
)
export type SessionInfo = Static<typeof SessionInfo>

export const McpServerConfig = described(
  Type.Union([
    Type.Object(
      {
        type: Type.Optional(Type.Literal('stdio')),
        command: Type.String({ minLength: 1, description: 'Executable that is started for the session.' }),
        args: Type.Optional(Type.Array(Type.String())),
        env: Type.Optional(described(Dictionary(Type.String()), 'Added to its environment.')),
      },
      strict,
    ),
    Type.Object(
      {
        type: StringEnum('http', 'sse'),
        url: Type.String({ minLength: 1 }),
        headers: Type.Optional(described(Dictionary(Type.String()), 'Sent with every request.')),
      },
      strict,
    ),
  ]),
  'An MCP server that a session brings along.',
)
export type McpServerConfig = Static<typeof McpServerConfig>

export const QuestionBehavior = described(
  StringEnum('ask', 'auto', 'deny'),
  'What becomes of questions of the agent. `ask` (default): a client answers · `auto`: each first option is taken · `deny`: refused, with a hint to decide alone.',
)
export type QuestionBehavior = Static<typeof QuestionBehavior>

export const MAX_TITLE_LENGTH = 500
export const MAX_MODEL_LENGTH = 500

const createSessionFields = {
  cwd: Text('Directory to work in: absolute, existing, inside the roots that the operator allows.'),
  profile: Type.Optional(Text('Who it runs as. May be left out where there is one profile only.')),
  permissionMode: Type.Optional(
    described(PermissionMode, "What it may do without asking. Default: the profile's, else `default`."),
  ),
  model: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_MODEL_LENGTH,
      description: "Default: the profile's, else the engine's own.",
    }),
  ),
  allowDangerouslySkipPermissions: Type.Optional(
    Flag('Pre-authorizes `bypassPermissions`. Dropped where the operator forbids that mode. Default false.'),
  ),
  capabilities: Type.Optional(
    Type.Array(Capability, {
      maxItems: 64,
      description: 'Provider profiles only: a part of what the profile grants. Default: all of it.',
    }),
  ),
  mcpServers: Type.Optional(described(Dictionary(McpServerConfig), 'By name. `cli` profiles only.')),
  title: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_TITLE_LENGTH, description: 'Default: derived, as `SessionInfo` says.' }),
  ),
  allowedTools: Type.Optional(Type.Array(Type.String(), { description: 'Tools that run without asking.' })),
  disallowedTools: Type.Optional(Type.Array(Type.String(), { description: 'Tools that never run.' })),
  maxTurns: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Calls of the model per turn. Default: no limit.',
    }),
  ),
  maxBudgetUsd: Type.Optional(
    Type.Number({ exclusiveMinimum: 0, description: 'What it may cost, US dollars. Default: no limit.' }),
  ),
  includePartialMessages: Type.Optional(
    Flag('Whether messages are also told while they are being written. Default true.'),
  ),
  settingSources: Type.Optional(
    Type.Array(StringEnum('user', 'project', 'local'), { description: 'Which settings of the agent are read.' }),
  ),
  approvalTimeoutMs: Type.Optional(
    Milliseconds(0, 'After so many milliseconds an approval counts as denied; 0: never. Default 300000.'),
  ),
  questionBehavior: Type.Optional(QuestionBehavior),
  meta: Type.Optional(described(JsonObject, "The caller's own, at most 16 KiB of JSON; `SessionInfo` has it again.")),
}
const prompt = Type.String({ minLength: 1, description: 'The first message.' })

export const CreateSessionRequest = Type.Object(
  {
    ...createSessionFields,
    prompt: Type.Optional(prompt),
    resume: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'An `sdkSessionId` to go on with; its history comes as events with `replay`.',
      }),
    ),
    forkSession: Type.Optional(
      Flag('With `resume`: goes on in a copy, and leaves the original as it is. Default false.'),
    ),
  },
  { ...strict, description: 'What a session is to be.' },
)
export type CreateSessionRequest = Static<typeof CreateSessionRequest>

export const JobSessionRequest = Type.Object(
  { ...createSessionFields, prompt },
  { ...strict, description: 'The session of a job: a prompt is required, and no earlier session can be resumed.' },
)

export const UpdateSessionRequest = Type.Object(
  {
    title: Type.Union([Type.String({ minLength: 1, maxLength: MAX_TITLE_LENGTH }), Type.Null()], {
      description: '`null` restores the derived one.',
    }),
  },
  { ...strict, description: 'A new title.' },
)
export type UpdateSessionRequest = Static<typeof UpdateSessionRequest>

export const SessionParams = Type.Object({ id: Text('Of the session.') })

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many on this page. Default 200.' }),
  ),
  cursor: Type.Optional(Text('Where the page begins, as the `Link` of the page before has it; opaque.')),
}

/** Of lists that take no parameters. */
export const NoQuery = Type.Object({}, strict)

export const ListSessionsQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(described(SessionStatus, 'Only sessions with this status.')),
    profile: Type.Optional(Text('Only sessions of this profile.')),
    engine: Type.Optional(described(Engine, 'Only sessions on this engine.')),
  },
  strict,
)
export type ListSessionsQuery = Static<typeof ListSessionsQuery>

export const SessionFileInfo = Type.Object(
  {
    path: Text('Relative, with slashes.'),
    bytes: Type.Integer({ description: 'Size of the content.' }),
    modifiedAt: Moment('When it was written last'),
  },
  { description: 'A file in the scratch filesystem of a provider session.' },
)
export type SessionFileInfo = Static<typeof SessionFileInfo>

export const ListSessionFilesResponse = Type.Object(
  { files: Type.Array(SessionFileInfo) },
  { description: 'The files of a session.' },
)
export type ListSessionFilesResponse = Static<typeof ListSessionFilesResponse>
