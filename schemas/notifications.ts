import { type Static, Type } from '@sinclair/typebox'
import { Count, Duration, described, Flag, Moment, StringEnum, strict, Text } from './common.js'
import { PermissionRequest } from './permissions.js'
import { SessionInfo } from './sessions.js'

export const NotificationType = described(
  StringEnum('permission_requested', 'turn_completed', 'session_error', 'session_closed'),
  'Which moment of a session it is.',
)
export type NotificationType = Static<typeof NotificationType>

export const SessionNotification = Type.Object(
  {
    id: Text('Its place among all notifications: opaque, rising as text; what `after` takes.'),
    type: NotificationType,
    sessionId: Type.String(),
    seq: Type.Integer({ description: 'Attaching with `afterSeq` = `seq - 1` lands on the event behind it.' }),
    ts: Moment('When it happened'),
    preview: Text('One line, fit for the body of a notification.'),
    session: described(SessionInfo, 'As the event left it.'),
    request: Type.Optional(described(PermissionRequest, 'With `permission_requested`.')),
    result: Type.Optional(
      Type.Object(
        {
          isError: Flag('Whether the turn failed.'),
          durationMs: Duration('How long the turn took'),
          numTurns: Count("The session's turns so far."),
          totalCostUsd: Count('Of all turns so far, US dollars.'),
        },
        { description: 'With `turn_completed`.' },
      ),
    ),
    reason: Type.Optional(Text('With `session_closed`: who ended it.')),
  },
  { description: 'One of four moments of a session, as webhooks and the feed tell it.' },
)
export type SessionNotification = Static<typeof SessionNotification>

const types = NotificationType.anyOf.map(({ const: name }) => name).join('|')

/** Which notifications a reader wants. */
const filter = {
  types: Type.Optional(
    Type.String({
      pattern: `^(${types})(,(${types}))*$`,
      description: 'Some of the types, with commas between them. Default: all.',
    }),
  ),
  profile: Type.Optional(Text('Only of sessions of this profile.')),
}

export const ListNotificationsQuery = Type.Object(
  {
    after: Type.Optional(Text('The `id` of the last one that is known. Default: the newest page.')),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many on this page. Default 200.' }),
    ),
    ...filter,
  },
  strict,
)
export type ListNotificationsQuery = Static<typeof ListNotificationsQuery>
