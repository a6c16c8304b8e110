import { type Static, Type } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { PermissionRequest } from './permissions.js'
import { SessionInfo } from './sessions.js'

export const NotificationType = StringEnum('permission_requested', 'turn_completed', 'session_error', 'session_closed')
export type NotificationType = Static<typeof NotificationType>

/** One of four moments of a session. Attaching with `afterSeq` = `seq - 1` lands on the event behind it. */
export const SessionNotification = Type.Object({
  type: NotificationType,
  sessionId: Type.String(),
  seq: Type.Integer(),
  ts: Type.Number(),
  preview: Type.String(),
  session: SessionInfo,
  request: Type.Optional(PermissionRequest),
  result: Type.Optional(
    Type.Object({
      isError: Type.Boolean(),
      durationMs: Type.Number(),
      numTurns: Type.Number(),
      totalCostUsd: Type.Number(),
    }),
  ),
  reason: Type.Optional(Type.String()),
})
export type SessionNotification = Static<typeof SessionNotification>
