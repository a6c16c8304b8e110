import { type Static, Type } from '@sinclair/typebox'
import { SessionEvent } from './events.js'
import { PendingExecution } from './executions.js'
import { PermissionRequest } from './permissions.js'
import { SessionInfo } from './sessions.js'

/** Version of the socket protocol, sent in the first frame of every stream. */
export const PROTOCOL_VERSION = 1

export const ExecutionLimits = Type.Object({
  timeoutMs: Type.Optional(Type.Number()),
  memoryLimitBytes: Type.Optional(Type.Number()),
})

export const AttachedFrame = Type.Object({
  type: Type.Literal('attached'),
  protocolVersion: Type.Literal(PROTOCOL_VERSION),
  session: SessionInfo,
  epoch: Type.String(),
  replayingFrom: Type.Integer(),
  oldestSeq: Type.Integer(),
  truncated: Type.Boolean(),
  pendingPermissions: Type.Array(PermissionRequest),
  pendingExecutions: Type.Array(PendingExecution),
})
export type AttachedFrame = Static<typeof AttachedFrame>

export const ServerFrame = Type.Union([
  AttachedFrame,
  Type.Object({ type: Type.Literal('event'), event: SessionEvent }),
  Type.Object({ type: Type.Literal('synced'), seq: Type.Integer() }),
  Type.Object({ type: Type.Literal('ack'), id: Type.String() }),
  Type.Object({
    type: Type.Literal('command_error'),
    id: Type.Optional(Type.String()),
    code: Type.String(),
    message: Type.String(),
  }),
  Type.Object({
    type: Type.Literal('tool_call_request'),
    executionId: Type.String(),
    toolName: Type.String(),
    input: Type.Unknown(),
    limits: Type.Optional(ExecutionLimits),
    expiresAt: Type.Optional(Type.Number()),
  }),
  Type.Object({ type: Type.Literal('tool_call_canceled'), executionId: Type.String(), reason: Type.String() }),
  Type.Object({ type: Type.Literal('pong') }),
])
export type ServerFrame = Static<typeof ServerFrame>
