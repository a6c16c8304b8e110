import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { JsonObject, StringEnum } from './common.js'
import { ExecutionBackend, ExecutionOutput, executionLogs } from './executions.js'
import { AnsweredBy, PermissionMode, PermissionRequest, ResolvedBy } from './permissions.js'
import { SessionStatus, TokenUsage } from './sessions.js'

export const TextBlock = Type.Object({ type: Type.Literal('text'), text: Type.String() })
export type TextBlock = Static<typeof TextBlock>

export const ThinkingBlock = Type.Object({ type: Type.Literal('thinking'), thinking: Type.String() })
export type ThinkingBlock = Static<typeof ThinkingBlock>

export const ToolUseBlock = Type.Object({
  type: Type.Literal('tool_use'),
  id: Type.String(),
  name: Type.String(),
  input: Type.Unknown(),
})
export type ToolUseBlock = Static<typeof ToolUseBlock>

export const ToolResultBlock = Type.Object({
  type: Type.Literal('tool_result'),
  tool_use_id: Type.String(),
  content: Type.Unknown(),
  is_error: Type.Optional(Type.Boolean()),
})
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
  Type.Object({ type: Type.String() }, { additionalProperties: true, description: 'unknown block types pass through' }),
)

/** Narrows on `type`; what is left then is an `OtherBlock`. */
export const MessageBlock = Type.Union([TextBlock, ThinkingBlock, ToolUseBlock, ToolResultBlock, OtherBlock])
export type MessageBlock = Static<typeof MessageBlock>

export const Message = Type.Object({
  role: Type.String(),
  content: Type.Union([Type.String(), Type.Array(MessageBlock)]),
  model: Type.Optional(Type.String()),
  stopReason: Type.Optional(Type.String()),
  usage: Type.Optional(TokenUsage),
})
export type Message = Static<typeof Message>

export const StreamDelta = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('thinking'), text: Type.String() }),
  Type.Object({ type: Type.Literal('tool_input'), json: Type.String() }),
])

export const TurnSubtype = StringEnum(
  'success',
  'error_during_execution',
  'error_max_turns',
  'error_max_budget_usd',
  'interrupted',
)
export type TurnSubtype = Static<typeof TurnSubtype>

export const SessionClosedReason = StringEnum('client', 'server', 'error')
export type SessionClosedReason = Static<typeof SessionClosedReason>

const Event = <const T extends string, P extends TProperties>(type: T, properties: P) =>
  Type.Object({ type: Type.Literal(type), ...properties })

/** One line of an agent's plan or todo list. */
export const PlanEntry = Type.Object({
  content: Type.String(),
  status: StringEnum('pending', 'in_progress', 'completed'),
  priority: Type.Optional(Type.String()),
})
export type PlanEntry = Static<typeof PlanEntry>

const parentToolUseId = Type.Union([Type.String(), Type.Null()])
const settled = { ...executionLogs, durationMs: Type.Optional(Type.Number()) }

/** What happened, without its place in the log: what an engine or the gateway tells. */
export const SessionEventBody = Type.Union([
  Event('system_init', {
    sdkSessionId: Type.String(),
    model: Type.String(),
    cwd: Type.String(),
    apiKeySource: Type.String(),
    permissionMode: PermissionMode,
    tools: Type.Array(Type.String()),
    skills: Type.Array(Type.String()),
    slashCommands: Type.Array(Type.String()),
    mcpServers: Type.Array(Type.Object({ name: Type.String(), status: Type.String() })),
    agent: Type.Optional(Type.String()),
    engineVersion: Type.Optional(Type.String()),
  }),
  Event('status_changed', { status: SessionStatus, detail: Type.Optional(Type.String()) }),
  Event('capabilities', {
    models: Type.Array(
      Type.Object({
        value: Type.String(),
        displayName: Type.String(),
        description: Type.Optional(Type.String()),
      }),
    ),
    commands: Type.Array(
      Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.String()),
        argumentHint: Type.Optional(Type.String()),
      }),
    ),
  }),
  Event('model_changed', { model: Type.Optional(Type.String()) }),
  Event('permission_mode_changed', { mode: PermissionMode }),
  Event('user_message', {
    message: Message,
    uuid: Type.String(),
    parentToolUseId,
    synthetic: Type.Optional(Type.Boolean()),
    replay: Type.Optional(Type.Boolean()),
    commandId: Type.Optional(Type.String()),
  }),
  Event('assistant_message', {
    message: Message,
    uuid: Type.String(),
    parentToolUseId,
    replay: Type.Optional(Type.Boolean()),
  }),
  Event('stream_delta', { uuid: Type.String(), blockIndex: Type.Integer(), delta: StreamDelta, parentToolUseId }),
  Event('turn_completed', {
    subtype: TurnSubtype,
    isError: Type.Boolean(),
    durationMs: Type.Number(),
    numTurns: Type.Number(),
    totalCostUsd: Type.Number(),
    result: Type.Optional(Type.String()),
    errors: Type.Optional(Type.Array(Type.String())),
    usage: TokenUsage,
  }),
  Event('permission_requested', { request: PermissionRequest }),
  Event('permission_resolved', {
    requestId: Type.String(),
    behavior: StringEnum('allow', 'deny'),
    resolvedBy: ResolvedBy,
    /** Absent: the host of the gateway itself, or an event of an earlier version. */
    by: Type.Optional(AnsweredBy),
    message: Type.Optional(Type.String()),
    /** What ran, when it is not what was shown. */
    updatedInput: Type.Optional(JsonObject),
  }),
  Event('execution_dispatched', {
    executionId: Type.String(),
    toolName: Type.String(),
    backend: ExecutionBackend,
    deferred: Type.Optional(Type.Boolean()),
    expiresAt: Type.Optional(Type.Number()),
  }),
  Event('execution_result', { executionId: Type.String(), output: ExecutionOutput, ...settled }),
  Event('execution_failed', { executionId: Type.String(), reason: Type.String(), error: Type.String(), ...settled }),
  Event('file_delivered', { path: Type.String(), bytes: Type.Integer(), description: Type.Optional(Type.String()) }),
  Event('context_usage', {
    usage: Type.Object({ totalTokens: Type.Number(), maxTokens: Type.Number(), percentage: Type.Number() }),
  }),
  Event('plan_updated', { entries: Type.Array(PlanEntry) }),
  Event('rate_limit', { info: JsonObject }),
  Event('engine_event', { payload: Type.Unknown() }),
  Event('session_error', { message: Type.String(), code: Type.Optional(Type.String()) }),
  Event('session_closed', { reason: SessionClosedReason }),
])
export type SessionEventBody = Static<typeof SessionEventBody>

/** Place and time of an event: `seq` counts from 1, rises strictly, is never reused and may have gaps. */
export const SessionEvent = Type.Intersect([
  Type.Object({ seq: Type.Integer({ minimum: 1 }), ts: Type.Number() }),
  SessionEventBody,
])
export type SessionEvent = { seq: number; ts: number } & SessionEventBody

export type SessionEventOf<T extends SessionEventBody['type']> = Extract<SessionEventBody, { type: T }>

export const EventsQuery = Type.Object({
  afterSeq: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  epoch: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
})
export type EventsQuery = Static<typeof EventsQuery>

export const ListEventsResponse = Type.Object({
  events: Type.Array(SessionEvent),
  nextAfterSeq: Type.Integer(),
  lastSeq: Type.Integer(),
  epoch: Type.String(),
  truncated: Type.Boolean(),
})
