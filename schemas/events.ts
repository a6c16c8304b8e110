import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { Count, Duration, described, Flag, JsonObject, Moment, StringEnum, strict, Text } from './common.js'
import { ExecutionBackend, ExecutionOutput, executionFailure, executionLogs } from './executions.js'
import { AnsweredBy, PermissionMode, PermissionRequest, ResolvedBy } from './permissions.js'
import { SessionStatus, TokenUsage } from './sessions.js'

export const TextBlock = Type.Object(
  { type: Type.Literal('text'), text: Type.String() },
  { description: 'What was said.' },
)
export type TextBlock = Static<typeof TextBlock>

export const ThinkingBlock = Type.Object(
  { type: Type.Literal('thinking'), thinking: Type.String() },
  { description: 'What the model thought.' },
)
export type ThinkingBlock = Static<typeof ThinkingBlock>

export const ToolUseBlock = Type.Object(
  {
    type: Type.Literal('tool_use'),
    id: Text('What its result and its permission request name.'),
    name: Text('The tool.'),
    input: Type.Unknown({ description: 'What it is called with.' }),
  },
  { description: 'A call of a tool.' },
)
export type ToolUseBlock = Static<typeof ToolUseBlock>

export const ToolResultBlock = Type.Object(
  {
    type: Type.Literal('tool_result'),
    tool_use_id: Text('The call.'),
    content: Type.Unknown({ description: 'Text, or blocks.' }),
    is_error: Type.Optional(Flag('Whether the call failed. Default false.')),
  },
  { description: 'The result of a call of a tool.' },
)
export type ToolResultBlock = Static<typeof ToolResultBlock>

/** Any string but those of the other blocks, which TypeScript has no type for; at run time there is no such thing. */
declare enum OtherBlockType {
  Other = 'a type that has no shape here',
}
/** A block of a type that has no shape here; it passes through. */
export interface OtherBlock {
  type: OtherBlockType
  [member: string]: unknown
}
export const OtherBlock = Type.Unsafe<OtherBlock>(
  Type.Object(
    { type: Type.String() },
    { additionalProperties: true, description: 'A part of a type that has no shape here; passed through as it came.' },
  ),
)

/** Narrows on `type`; what is left then is an `OtherBlock`. */
export const MessageBlock = Type.Union([TextBlock, ThinkingBlock, ToolUseBlock, ToolResultBlock, OtherBlock], {
  description: 'A part of a message.',
})
export type MessageBlock = Static<typeof MessageBlock>

export const Message = Type.Object(
  {
    role: Text('`user` or `assistant`.'),
    content: Type.Union([Type.String(), Type.Array(MessageBlock)], { description: 'Plain text, or parts in order.' }),
    model: Type.Optional(Text('The model that wrote it.')),
    stopReason: Type.Optional(Text("Why the model stopped, in the model's words.")),
    usage: Type.Optional(described(TokenUsage, 'Of the call of the model that gave it.')),
  },
  { description: 'A message of the conversation.' },
)
export type Message = Static<typeof Message>

const Delta = <const T extends string, P extends TProperties>(type: T, description: string, properties: P) =>
  Type.Object({ type: Type.Literal(type), ...properties }, { description })

export const StreamDelta = Type.Union(
  [
    Delta('text', 'More of a text.', { text: Type.String() }),
    Delta('thinking', 'More of a thought.', { text: Type.String() }),
    Delta('tool_input', "More of a tool call's input.", { json: Text('A part of its JSON text.') }),
  ],
  { description: 'What a block of a message grows by while it is written.' },
)

export const TurnSubtype = described(
  StringEnum('success', 'error_during_execution', 'error_max_turns', 'error_max_budget_usd', 'interrupted'),
  'How a turn ended.',
)
export type TurnSubtype = Static<typeof TurnSubtype>

export const SessionClosedReason = described(
  StringEnum('client', 'server', 'error'),
  'Who ended the session: a caller, the gateway, or an error.',
)
export type SessionClosedReason = Static<typeof SessionClosedReason>

const Event = <const T extends string, P extends TProperties>(type: T, description: string, properties: P) =>
  Type.Object({ type: Type.Literal(type), ...properties }, { description })

export const PlanEntry = Type.Object(
  {
    content: Text('What is to be done.'),
    status: StringEnum('pending', 'in_progress', 'completed'),
    priority: Type.Optional(Text("In the agent's words.")),
  },
  { description: "One line of an agent's plan or todo list." },
)
export type PlanEntry = Static<typeof PlanEntry>

const parentToolUseId = Type.Union([Type.String(), Type.Null()], {
  description: 'The tool call within which a helper of the agent said it; `null`: none.',
})
const settled = { ...executionLogs, durationMs: Type.Optional(Duration('How long it took')) }
const replay = Type.Optional(Flag('From an earlier session that this one resumes. Default false.'))
const executionId = Text('Of the execution.')

/** What happened, without its place in the log: what an engine or the gateway tells. */
export const SessionEventBody = Type.Union([
  Event('system_init', 'The engine is there, and says what it is.', {
    sdkSessionId: Text("The engine's own id of the session."),
    model: Type.String(),
    cwd: Type.String(),
    apiKeySource: Text('Where the upstream credential comes from; `oauth` is a personal login.'),
    permissionMode: PermissionMode,
    tools: Type.Array(Type.String(), { description: 'Names of its tools.' }),
    skills: Type.Array(Type.String(), { description: 'Names of its skills.' }),
    slashCommands: Type.Array(Type.String(), { description: 'Names of commands that a message may begin with.' }),
    mcpServers: Type.Array(Type.Object({ name: Type.String(), status: Text("In the agent's words.") }), {
      description: 'Its MCP servers.',
    }),
    agent: Type.Optional(Text('Which command-line agent it is.')),
    engineVersion: Type.Optional(Type.String()),
  }),
  Event('status_changed', 'The session has another status.', {
    status: SessionStatus,
    detail: Type.Optional(Text('Why, in a few words.')),
  }),
  Event('capabilities', 'What the agent offers; the whole of it each time.', {
    models: Type.Array(
      Type.Object({
        value: Text('What `set_model` takes.'),
        displayName: Text('What a person is shown.'),
        description: Type.Optional(Type.String()),
      }),
      { description: 'Models to choose from.' },
    ),
    commands: Type.Array(
      Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.String()),
        argumentHint: Type.Optional(Text('What may follow it.')),
      }),
      { description: 'Commands that a message may begin with.' },
    ),
  }),
  Event('model_changed', 'The session is on another model.', {
    model: Type.Optional(Text('Absent: the default one.')),
  }),
  Event('permission_mode_changed', 'What the agent may do without asking has changed.', { mode: PermissionMode }),
  Event('user_message', 'Somebody said something to the agent, or a tool gave its result.', {
    message: Message,
    uuid: Text('Of the message.'),
    parentToolUseId,
    synthetic: Type.Optional(Flag("Said by the engine in the user's place, as tool results are. Default false.")),
    replay,
    commandId: Type.Optional(Text('Of the command that it came by.')),
  }),
  Event('assistant_message', 'The agent said something, or calls tools.', {
    message: Message,
    uuid: Text('Of the message; the `stream_delta`s before it have the same.'),
    parentToolUseId,
    replay,
  }),
  Event('stream_delta', 'A message grows. Leaves the log once the message is whole.', {
    uuid: Text('Of the message that is being written.'),
    blockIndex: Type.Integer({ description: 'Place of the block in the message, from 0.' }),
    delta: StreamDelta,
    parentToolUseId,
  }),
  Event('turn_completed', 'A turn is over.', {
    subtype: TurnSubtype,
    isError: Flag('Whether it failed.'),
    durationMs: Duration('How long it took'),
    numTurns: Count("The session's turns so far."),
    totalCostUsd: Count('Of all turns so far, US dollars.'),
    result: Type.Optional(Text('What the agent said last.')),
    errors: Type.Optional(Type.Array(Type.String(), { description: 'Why it failed.' })),
    usage: described(TokenUsage, 'Of this turn.'),
  }),
  Event('permission_requested', 'The agent waits for an approval, or for an answer.', { request: PermissionRequest }),
  Event('permission_resolved', 'An approval or a question is settled.', {
    requestId: Text('Of the request.'),
    behavior: StringEnum('allow', 'deny'),
    resolvedBy: ResolvedBy,
    by: Type.Optional(
      described(AnsweredBy, 'Who answered. Absent: the host of the gateway itself, or an event of an earlier version.'),
    ),
    message: Type.Optional(Text('What the agent was told.')),
    updatedInput: Type.Optional(described(JsonObject, 'What ran, when it is not what was shown.')),
  }),
  Event('execution_dispatched', 'Work is handed out of the engine.', {
    executionId,
    toolName: Type.String(),
    backend: ExecutionBackend,
    deferred: Type.Optional(Flag('Whether its result is delivered over `/executions`. Default false.')),
    expiresAt: Type.Optional(Moment('When it fails with the reason `timeout`; absent: never')),
  }),
  Event('execution_result', 'Work that was handed out has a result.', {
    executionId,
    output: ExecutionOutput,
    ...settled,
  }),
  Event('execution_failed', 'Work that was handed out has failed.', { executionId, ...executionFailure, ...settled }),
  Event('file_delivered', 'The agent hands over a file.', {
    path: Text("In the session's files."),
    bytes: Type.Integer({ description: 'Its size.' }),
    description: Type.Optional(Text('What it is.')),
  }),
  Event('context_usage', 'How full the context of the model is.', {
    usage: Type.Object({
      totalTokens: Count('In use.'),
      maxTokens: Count('That there is room for.'),
      percentage: Count('The part in use, 0 to 100.'),
    }),
  }),
  Event('plan_updated', 'The agent has another plan.', {
    entries: Type.Array(PlanEntry, { description: 'The whole of it.' }),
  }),
  Event('rate_limit', 'What the upstream says of its limits.', {
    info: described(JsonObject, "In the upstream's words."),
  }),
  Event('engine_event', 'Anything of an engine that has no type here.', {
    payload: Type.Unknown({ description: "In the engine's words." }),
  }),
  Event('session_error', 'The session has failed.', {
    message: Text('One sentence for a person.'),
    code: Type.Optional(Text('A word for programs.')),
  }),
  Event('session_closed', 'The session is over; nothing comes after it.', { reason: SessionClosedReason }),
])
export type SessionEventBody = Static<typeof SessionEventBody>

export const SessionEvent = Type.Intersect(
  [
    Type.Object({
      seq: Type.Integer({
        minimum: 1,
        description: 'Place in the log: from 1, strictly rising, never used twice in a session; gaps are allowed.',
      }),
      ts: Moment('When it happened'),
    }),
    SessionEventBody,
  ],
  { description: 'Something that happened in a session.' },
)
export type SessionEvent = { seq: number; ts: number } & SessionEventBody

export type SessionEventOf<T extends SessionEventBody['type']> = Extract<SessionEventBody, { type: T }>

export const EventsQuery = Type.Object({
  afterSeq: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only events after this one. Default 0: all.',
    }),
  ),
  epoch: Type.Optional(Text('Of the log that `afterSeq` is of.')),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'At most so many. Default 1000.' })),
})
export type EventsQuery = Static<typeof EventsQuery>

/** The same of a page. A stream takes more: who cannot set headers for one may put what the host's `authenticate` reads there. */
export const ListEventsQuery = Type.Object(EventsQuery.properties, strict)

export const ListEventsResponse = Type.Object(
  {
    events: Type.Array(SessionEvent),
    nextAfterSeq: Type.Integer({ description: '`afterSeq` of the next page.' }),
    lastSeq: Type.Integer({
      description: 'Of the last event that there is; there is a further page while it is higher.',
    }),
    epoch: Text("This log's identity; a `seq` of another one says nothing here."),
    truncated: Flag('Events after `afterSeq` are missing.'),
  },
  { description: "A part of a session's log." },
)
