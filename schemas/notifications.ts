import { type Static, Type } from '@sinclair/typebox'
import { StringEnum, strict } from './common.js'
import { PermissionRequest } from './permissions.js'
import { SessionInfo } from './sessions.js'

export const NotificationType = StringEnum('permission_requested', 'turn_completed', 'session_error', 'session_closed')
export type NotificationType = Static<typeof NotificationType>

/** One of four moments of a session. Attaching with `afterSeq` = `seq - 1` lands on the event behind it. */
export const SessionNotification = Type.Object({
  /** Its place among all notifications: opaque, rising as text. What comes after it is asked for with `after`. */
  id: Type.String(),
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

const types = NotificationType.anyOf.map(({ const: name }) => name).join('|')

/** Which notifications a reader wants. */
const filter = {
  /** Some of the types, with commas between them; absent: all. */
  types: Type.Optional(Type.String({ pattern: `^(${types})(,(${types}))*$` })),
  profile: Type.Optional(Type.String()),
}

/** `after`: the id of the last one that is known; absent: the newest page. */
export const ListNotificationsQuery = Type.Object(
  {
    after: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    ...filter,
  },
  strict,
)
export type ListNotificationsQuery = Static<typeof ListNotificationsQuery>
