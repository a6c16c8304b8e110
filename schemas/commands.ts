import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { StringEnum, strict } from './common.js'
import { ExecutionOutput, executionLogs } from './executions.js'
import { PermissionMode, permissionDecisionFields } from './permissions.js'
import { MAX_MODEL_LENGTH } from './sessions.js'

export const MAX_COMMAND_ID_LENGTH = 200

const Command = <const T extends string, P extends TProperties>(type: T, properties: P) =>
  Type.Object(
    { type: Type.Literal(type), id: Type.Optional(Type.String({ maxLength: MAX_COMMAND_ID_LENGTH })), ...properties },
    strict,
  )

export const WhenBusy = StringEnum('enqueue', 'interrupt', 'reject')
export type WhenBusy = Static<typeof WhenBusy>

const requestId = Type.String()
const executionId = Type.String()

export const UserMessageCommand = Command('user_message', {
  text: Type.String({ minLength: 1 }),
  whenBusy: Type.Optional(WhenBusy),
})
export const PermissionDecisionCommand = Type.Union([
  Command('permission_decision', { requestId, ...permissionDecisionFields.allow }),
  Command('permission_decision', { requestId, ...permissionDecisionFields.deny }),
])

/** One schema per command name; a frame is checked against the row that its `type` selects. */
export const SessionCommands = {
  user_message: UserMessageCommand,
  permission_decision: PermissionDecisionCommand,
  interrupt: Command('interrupt', {}),
  set_permission_mode: Command('set_permission_mode', { mode: PermissionMode }),
  set_model: Command('set_model', { model: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_MODEL_LENGTH })) }),
  tool_call_result: Command('tool_call_result', { executionId, output: ExecutionOutput, ...executionLogs }),
  tool_call_error: Command('tool_call_error', {
    executionId,
    reason: Type.String(),
    error: Type.String(),
    ...executionLogs,
  }),
  close: Command('close', {}),
  ping: Command('ping', {}),
} as const

export const SessionCommand = Type.Union(Object.values(SessionCommands))
export type SessionCommand = {
  [K in keyof typeof SessionCommands]: Static<(typeof SessionCommands)[K]>
}[keyof typeof SessionCommands]
export type SessionCommandOf<T extends SessionCommand['type']> = Extract<SessionCommand, { type: T }>

export const CommandResponse = Type.Object({ ok: Type.Literal(true) })
