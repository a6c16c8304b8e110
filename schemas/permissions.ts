import { type Static, Type } from '@sinclair/typebox'
import { JsonObject, StringEnum, strict } from './common.js'

/** Every permission mode of the `cli` engine; the `provider` engine has the first three. */
export const PermissionMode = StringEnum('default', 'bypassPermissions', 'dontAsk', 'acceptEdits', 'plan', 'auto')
export type PermissionMode = Static<typeof PermissionMode>

export const PROVIDER_PERMISSION_MODES: readonly PermissionMode[] = ['default', 'bypassPermissions', 'dontAsk']
export const CLI_PERMISSION_MODES: readonly PermissionMode[] = [
  ...PROVIDER_PERMISSION_MODES,
  'acceptEdits',
  'plan',
  'auto',
]

/** `toolName` of the request by which an agent asks its user a question. */
export const ASK_USER_QUESTION = 'AskUserQuestion'

export const PermissionRequest = Type.Object({
  id: Type.String(),
  toolName: Type.String(),
  toolUseId: Type.String(),
  input: JsonObject,
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  decisionReason: Type.Optional(Type.String()),
  agentId: Type.Optional(Type.String()),
  expiresAt: Type.Optional(Type.Number()),
})
export type PermissionRequest = Static<typeof PermissionRequest>

const allow = { behavior: Type.Literal('allow'), updatedInput: Type.Optional(JsonObject) }
const deny = {
  behavior: Type.Literal('deny'),
  message: Type.Optional(Type.String()),
  interrupt: Type.Optional(Type.Boolean()),
}
export const permissionDecisionFields = { allow, deny }

export const ResolvePermissionRequest = Type.Union([Type.Object(allow, strict), Type.Object(deny, strict)])
export type ResolvePermissionRequest = Static<typeof ResolvePermissionRequest>

export const ResolvePermissionResponse = Type.Object({ resolved: Type.Literal(true) })

/** Who settled a permission request. */
export const ResolvedBy = StringEnum('client', 'timeout', 'policy')
export type ResolvedBy = Static<typeof ResolvedBy>

/** The way by which an answer came: a person's, or that of the clock or the policy. */
export const AnswerChannel = StringEnum('socket', 'rest', 'inbox', 'link', 'policy', 'timeout')
export type AnswerChannel = Static<typeof AnswerChannel>

/** Who answered. `principal`: the name of the caller, as `authenticate` gave it. */
export const AnsweredBy = Type.Object({ principal: Type.Optional(Type.String()), channel: AnswerChannel })
export type AnsweredBy = Static<typeof AnsweredBy>
